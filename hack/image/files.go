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

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const certificatesFile = "etc/ssl/certs/ca-certificates.crt"

// file is one of an image. A name that ends with a slash is a folder.
type file struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// baseFiles are what distroless/static has: users, certificates, time zones, and where to write.
func baseFiles(ctx context.Context) ([]file, error) {
	files := []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/nsswitch.conf", mode: 0o644, content: []byte("hosts: files dns\n")},
		{name: "etc/passwd", mode: 0o644, content: []byte(
			"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: certificatesFile, mode: 0o644, content: certificates()},
		{name: "home/", mode: 0o755},
		{name: "home/nonroot/", mode: 0o700, owner: nonroot},
		{name: "root/", mode: 0o700},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/zoneinfo/", mode: 0o755},
	}
	zones, err := timeZones(ctx)
	return append(files, zones...), err
}

// certificates are those that Mozilla trusts.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	return text.Bytes()
}

// timeZones are those of the Go release that builds the manager, and so those that it has inside.
func timeZones(ctx context.Context) ([]file, error) {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the Go release: %w", err)
	}
	archive, err := zip.OpenReader(filepath.Join(string(bytes.TrimSpace(goroot)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, fmt.Errorf("reading the time zones: %w", err)
	}
	defer archive.Close()
	var files []file
	for _, entry := range archive.File { // folders come before what they hold
		mode := int64(0o644)
		if entry.FileInfo().IsDir() {
			mode = 0o755
		}
		content, err := fs.ReadFile(archive, strings.TrimSuffix(entry.Name, "/"))
		if err != nil && !entry.FileInfo().IsDir() {
			return nil, fmt.Errorf("reading the time zone %s: %w", entry.Name, err)
		}
		files = append(files, file{name: "usr/share/zoneinfo/" + entry.Name, mode: mode, content: content})
	}
	return files, nil
}

// layerOf packs files, all of one time.
func layerOf(files []file, created time.Time) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: created,
		}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
