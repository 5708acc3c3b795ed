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

package subscriber

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/digest"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/plan"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/webhook"
	"github.com/ktechhub/configwatch/internal/workload"
)

// Keys of the Secret that a webhook's secretRef names.
const (
	tokenKey    = "token"
	hmacKey     = "hmacKey"
	caBundleKey = "ca.crt"
	urlKey      = "url"
)

// nodesJoinBy is the type of Secrets by which nodes join a cluster.
const nodesJoinBy corev1.SecretType = "bootstrap.kubernetes.io/token"

// readTime is how long reading from the API server may take in an attempt, so that none has its place for ever.
const readTime = 10 * time.Second

// Sources knows the labels of sources.
type Sources interface {
	Get(namespace string, ref source.Ref) *source.Source
}

// Webhooks tells subscribers by their webhooks.
type Webhooks struct {
	// Client reads the Secrets with what webhooks need, and data of ConfigMaps that is asked for.
	Client  kubernetes.Interface
	Sources Sources
	// Sender sends the requests.
	Sender *webhook.Client

	room *room
}

// NewWebhooks makes one.
func NewWebhooks(client kubernetes.Interface, sources Sources, sender *webhook.Client) *Webhooks {
	return &Webhooks{Client: client, Sources: sources, Sender: sender, room: newRoom()}
}

// Tell makes one attempt. No message in what it returns has data of a Secret or ConfigMap in it.
func (w *Webhooks) Tell(ctx context.Context, cw types.NamespacedName, d plan.Delivery) plan.Attempt {
	endpoint, err := w.endpoint(ctx, cw.Namespace, &d.Subscriber.Webhook)
	if err != nil {
		return failed(err)
	}
	message, hash, sent, err := w.message(ctx, cw, d)
	if err != nil {
		return failed(err)
	}
	outcome := w.Sender.Deliver(ctx, endpoint, message.WhenTaken(sent))
	return plan.Attempt{
		Message: outcome.Message, Refused: outcome.Result == webhook.Refused, RetryAfter: outcome.RetryAfter, Hash: hash,
	}
}

// unusableError tells that the Secret of a webhook can't be used until a human has mended it.
type unusableError struct{ why string }

func (e *unusableError) Error() string { return e.why }

// failed is an attempt that ended before anything was sent. What a human has to mend is refused.
func failed(err error) plan.Attempt {
	_, unusable := errors.AsType[*unusableError](err)
	return plan.Attempt{Message: err.Error(), Refused: unusable || apierrors.IsForbidden(err)}
}

func (w *Webhooks) endpoint(ctx context.Context, namespace string, spec *v1alpha1.Webhook) (webhook.Endpoint, error) {
	endpoint := webhook.Endpoint{URL: spec.URL, Format: webhook.Format(spec.Format)}
	if spec.SecretRef == nil {
		return endpoint, nil
	}
	name := spec.SecretRef.Name
	secret, err := w.secret(ctx, namespace, name)
	if err == nil {
		err = checkType(secret.Type)
	}
	if err != nil {
		return endpoint, fmt.Errorf("reading Secret %s, which secretRef names: %w", name, err)
	}
	endpoint.Token, endpoint.HMACKey, endpoint.CABundle = secret.Data[tokenKey], secret.Data[hmacKey], secret.Data[caBundleKey]
	if spec.URL != "" {
		return endpoint, nil
	}
	endpoint.Name = "the URL in Secret " + name
	endpoint.URL = string(bytes.TrimSpace(secret.Data[urlKey]))
	if endpoint.URL == "" {
		return endpoint, &unusableError{fmt.Sprintf("Secret %s, which secretRef names, has no URL in its key %s: "+
			"put the address of the webhook there, or write it into webhook.url", name, urlKey)}
	}
	return endpoint, nil
}

// secret reads a Secret. A list of one name needs no more than the right to list, which the operator has anyway.
func (w *Webhooks) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	list, err := w.Client.CoreV1().Secrets(namespace).List(ctx, named(name))
	switch {
	case err != nil:
		return nil, err
	case len(list.Items) == 0:
		return nil, &unusableError{"it does not exist"}
	}
	return &list.Items[0], nil
}

// checkType refuses the identities that Kubernetes itself keeps in Secrets: who may write a ConfigWatch would have them
// sent to a server of theirs.
func checkType(t corev1.SecretType) error {
	if t == corev1.SecretTypeServiceAccountToken || t == nodesJoinBy {
		return &unusableError{fmt.Sprintf("it is of type %s, and is never sent: put a token of the webhook's own into another Secret", t)}
	}
	return nil
}

func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// message is what is sent, and the hash of the content if that is newer than the event's. It keeps its room in memory
// until it was sent.
func (w *Webhooks) message(ctx context.Context, cw types.NamespacedName, d plan.Delivery) (
	message webhook.Message, hash string, sent func(), err error,
) {
	switch d.Event.Event {
	case v1alpha1.SubscriberRestartTriggered, v1alpha1.SubscriberRolloutCompleted, v1alpha1.SubscriberRolloutFailed:
		message, err = webhook.FromRollout(rolloutOf(cw, d))
		return message, "", func() {}, err
	case v1alpha1.SubscriberAdded, v1alpha1.SubscriberModified, v1alpha1.SubscriberDeleted:
	}
	change := w.changeOf(cw.Namespace, d)
	wanted := d.Subscriber.Webhook.Payload == v1alpha1.PayloadData && change.Kind == v1alpha1.ConfigMap && change.Type != feed.Deleted
	if !wanted && labelSize(change) <= smallLabels {
		message, err = webhook.FromChange(change, nil)
		return message, "", func() {}, err
	}
	sent, err = w.room.take(ctx, d.Retry, func() (int, error) {
		var data *webhook.ConfigMapData
		if wanted {
			var err error
			if data, err = w.addData(ctx, &change, d.Keys); err != nil {
				return 0, err
			}
			hash = string(change.Hash)
		}
		var err error
		message, err = webhook.FromChange(change, data)
		return message.Size(), err
	})
	return message, hash, sent, err
}

// addData reads the data that a ConfigMap has now, as the cache has none. If that is newer than the change, the change
// becomes the newer one, by its id too: who knows messages by their ids must not take it for one that it has. There is no
// data if the object is gone.
func (w *Webhooks) addData(ctx context.Context, change *feed.Change, keys []string) (*webhook.ConfigMapData, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	list, err := w.Client.CoreV1().ConfigMaps(change.Namespace).List(ctx, named(change.Name))
	if err != nil {
		return nil, fmt.Errorf("reading the data of ConfigMap %s: %w", change.Name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	object := &list.Items[0]
	if hash := digest.Plain().Content(object.Data, object.BinaryData).Hash(keys); hash != change.Hash {
		change.Hash, change.ChangedKeys = hash, nil
		change.UID, change.ResourceVersion, change.Labels = object.UID, object.ResourceVersion, object.Labels
	}
	return only(object, keys), nil
}

// only is the data of those keys, or all of it if there are none.
func only(object *corev1.ConfigMap, keys []string) *webhook.ConfigMapData {
	if len(keys) == 0 {
		return &webhook.ConfigMapData{Data: object.Data, BinaryData: object.BinaryData}
	}
	data := &webhook.ConfigMapData{Data: map[string]string{}, BinaryData: map[string][]byte{}}
	for _, key := range keys {
		if value, ok := object.Data[key]; ok {
			data.Data[key] = value
		}
		if value, ok := object.BinaryData[key]; ok {
			data.BinaryData[key] = value
		}
	}
	return data
}

func (w *Webhooks) changeOf(namespace string, d plan.Delivery) feed.Change {
	uid, version, _ := strings.Cut(d.Event.ID, "/")
	change := feed.Change{
		Type: feed.EventType(d.Event.Event), Namespace: namespace, Kind: v1alpha1.SourceKind(d.Event.Kind), Name: d.Event.Name,
		UID: types.UID(uid), ResourceVersion: version, Hash: digest.Hash(d.Event.Hash), PreviousHash: digest.Hash(d.PreviousHash),
		ChangedKeys: d.Event.ChangedKeys, Time: d.Event.Time.Time,
	}
	if s := w.Sources.Get(namespace, source.Ref{Kind: change.Kind, Name: change.Name}); s != nil {
		change.Labels = s.Labels
	}
	return change
}

// rolloutOf is an event of a target. Its id is <uid of the ConfigWatch>/<uid of the target>/<restart>/<step>.
func rolloutOf(cw types.NamespacedName, d plan.Delivery) webhook.Rollout {
	cause, outcome, _ := strings.Cut(d.Event.Message, ". ")
	rollout := webhook.Rollout{
		Event: webhook.RolloutEvent(d.Event.Event), Namespace: cw.Namespace, ConfigWatch: cw.Name,
		Target: webhook.Target{APIVersion: workload.APIVersion(d.Event.Kind), Kind: d.Event.Kind, Name: d.Event.Name},
		Cause:  cause, Outcome: outcome, Time: d.Event.Time.Time,
	}
	const parts = 4
	if id := strings.Split(d.Event.ID, "/"); len(id) == parts {
		rollout.UID, rollout.Target.UID = types.UID(id[0]), types.UID(id[1])
		rollout.Restart, _ = strconv.ParseInt(id[2], 10, 64)
	}
	return rollout
}
