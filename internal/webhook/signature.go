/*
Copyright 2026 The ConfigWatch Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

	http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// keyPrefix begins a key that is base64.
const keyPrefix = "whsec_"

// sign adds the headers of Standard Webhooks 1.0.0: the id, which is the same at each attempt, the time of the
// attempt, and the signature of both and the body. There are none without a key.
// See https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
func sign(header http.Header, hmacKey []byte, id string, now time.Time, body []byte) error {
	if len(hmacKey) == 0 {
		return nil
	}
	key, err := signingKey(hmacKey)
	if err != nil {
		return err
	}
	// A dot within the id could make two messages out of the same signed bytes.
	id = percentEncode(id, '.')
	timestamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}

func signingKey(secret []byte) ([]byte, error) {
	encoded, ok := bytes.CutPrefix(secret, []byte(keyPrefix))
	if !ok {
		return secret, nil
	}
	key, err := base64.StdEncoding.AppendDecode(nil, bytes.TrimSpace(encoded))
	if err != nil || len(key) == 0 {
		return nil, errors.New("the key hmacKey of its Secret begins with " + keyPrefix + ", and must go on with the key as base64")
	}
	return key, nil
}
