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

package controlplane

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// assetsVariable names a folder with etcd, kube-apiserver and kubectl, as it does for controller-runtime's envtest.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Build makes the programs that the user's cache does not hold yet and returns the folder they are in. The programs in
// KUBEBUILDER_ASSETS, if that is set, are preferred. Progress gets what is being done, and how long it usually takes.
// Builds in several processes at once are safe: one works, the others wait for it.
func Build(ctx context.Context, components []Component, progress io.Writer) (string, error) {
	b, err := newBuilder(progress)
	if err != nil {
		return "", err
	}
	return b.dir, b.build(ctx, components)
}

// Path is the folder that Build would return; it fails if one of the programs is not there yet.
func Path(components []Component) (string, error) {
	b, err := newBuilder(io.Discard)
	if err != nil {
		return "", err
	}
	if missing := b.missing(components); len(missing) > 0 {
		return "", fmt.Errorf("not built yet: %v", missing)
	}
	return b.dir, nil
}

type builder struct {
	source   string // the folder hack/controlplane of the repository
	assets   string // KUBEBUILDER_ASSETS, or empty
	dir      string // the finished programs
	versions map[Component]string
	progress io.Writer
}

func newBuilder(progress io.Writer) (*builder, error) {
	folder, err := sourceFolder()
	if err != nil {
		return nil, err
	}
	versions, pins, err := pinnedVersions(folder)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the user's cache folder: %w", err)
	}
	assets := os.Getenv(assetsVariable)
	key := sha256.Sum256(append(pins, assets...))
	name := fmt.Sprintf("%s-%s-%s-%x", versions[APIServer], runtime.GOOS, runtime.GOARCH, key[:4])
	return &builder{
		source:   folder,
		assets:   assets,
		dir:      filepath.Join(cache, "configwatch", "controlplane", name),
		versions: versions,
		progress: progress,
	}, nil
}

func (b *builder) missing(components []Component) []Component {
	return slices.DeleteFunc(slices.Clone(components), func(component Component) bool {
		_, err := os.Stat(filepath.Join(b.dir, string(component)))
		return err == nil
	})
}

func (b *builder) build(ctx context.Context, components []Component) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b.say("%d of %d programs to build into %s", len(b.missing(components)), len(components), b.dir)
	for _, component := range components {
		if err := b.provide(ctx, component); err != nil {
			return fmt.Errorf("building %s: %w", component, err)
		}
	}
	return nil
}

func (b *builder) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, format+"\n", args...) // a lost line of progress is no reason to end a build
}

// lock waits until no other process builds into the same folder.
func (b *builder) lock(ctx context.Context) (unlock func(), err error) {
	path := filepath.Join(b.dir, ".lock")
	waiting := false
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		lock, err := tryLock(path)
		if errors.Is(err, errLocked) && !waiting {
			waiting = true
			b.say("another process is building: waiting for it")
		}
		if errors.Is(err, errLocked) {
			return false, nil
		}
		unlock = func() { _ = lock.Close() }
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return unlock, nil
}

// provide puts one program into the folder: all of it, or nothing.
func (b *builder) provide(ctx context.Context, component Component) error {
	if len(b.missing([]Component{component})) == 0 {
		b.say("%s %s: found in the cache", component, b.versions[component])
		return nil
	}
	unfinished := filepath.Join(b.dir, "."+string(component))
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.make(ctx, component, unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, filepath.Join(b.dir, string(component)))
}

func (b *builder) make(ctx context.Context, component Component, path string) error {
	if b.assets != "" && slices.Contains(Envtest(), component) {
		return b.link(component, path)
	}
	if err := b.compile(ctx, component, path); err != nil {
		return err
	}
	if component == Kwok {
		return b.copyStages(ctx)
	}
	return nil
}

func (b *builder) link(component Component, path string) error {
	asset, err := filepath.Abs(filepath.Join(b.assets, string(component)))
	if err != nil {
		return err
	}
	if _, err := os.Stat(asset); err != nil {
		return fmt.Errorf("looking into %s: %w", assetsVariable, err)
	}
	b.say("%s: taken from %s", component, assetsVariable)
	return os.Symlink(asset, path)
}
