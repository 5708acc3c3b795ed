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
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	versionPackage = "github.com/ktechhub/configwatch/internal/version"

	// nonroot is the user of distroless' images of that name.
	nonroot = 65532
)

// run writes the layout and returns the digest of its image index.
func run(ctx context.Context, opts options) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, wanted := range opts.platforms {
		platform, err := v1.ParsePlatform(wanted)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("reading the platform %q: %w", wanted, err)
		}
		image, err := build(ctx, opts, platform)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("for %s: %w", wanted, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	if err := os.RemoveAll(opts.output); err != nil {
		return v1.Hash{}, fmt.Errorf("removing the old layout: %w", err)
	}
	path, err := layout.Write(opts.output, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("writing the layout: %w", err)
	}
	version := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": opts.version})
	if err := path.AppendIndex(index, version); err != nil {
		return v1.Hash{}, fmt.Errorf("writing the layout: %w", err)
	}
	return index.Digest()
}

// push pushes the image index of the layout.
func push(ctx context.Context, opts options, digest v1.Hash) error {
	ref, err := name.NewTag(opts.push, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("reading the name %q: %w", opts.push, err)
	}
	all, err := layout.ImageIndexFromPath(opts.output)
	if err != nil {
		return fmt.Errorf("reading the layout: %w", err)
	}
	index, err := all.ImageIndex(digest)
	if err != nil {
		return fmt.Errorf("reading the layout: %w", err)
	}
	return remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// build makes the image for a platform.
func build(ctx context.Context, opts options, platform *v1.Platform) (v1.Image, error) {
	binary, err := compile(ctx, opts, platform)
	if err != nil {
		return nil, err
	}
	base, err := baseFiles(ctx)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]file{base, {{name: "manager", mode: 0o755, content: binary}}} {
		layer, err := layerOf(files, opts.created)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: opts.created}, CreatedBy: "hack/image"}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history}); err != nil {
			return nil, fmt.Errorf("adding a layer: %w", err)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = v1.Time{Time: opts.created}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", nonroot, nonroot),
		Entrypoint: []string{"/manager"},
		WorkingDir: "/home/nonroot",
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"SSL_CERT_FILE=/" + certificatesFile,
		},
		Labels: labels(opts),
	}
	return mutate.ConfigFile(image, config)
}

// labels are those of the Dockerfile.
func labels(opts options) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "configwatch",
		"org.opencontainers.image.description": "Restarts workloads when the ConfigMaps and Secrets they use change",
		"org.opencontainers.image.source":      "https://github.com/ktechhub/configwatch",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     opts.version,
		"org.opencontainers.image.revision":    opts.commit,
	}
}

// compile builds the manager as the Dockerfile does.
func compile(ctx context.Context, opts options, platform *v1.Platform) ([]byte, error) {
	folder, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	binary := filepath.Join(folder, "manager")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", fmt.Sprintf("-s -w -X %[1]s.Version=%s -X %[1]s.Commit=%s", versionPackage, opts.version, opts.commit),
		"-o", binary, "./cmd")
	command.Dir = opts.root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return os.ReadFile(binary)
}
