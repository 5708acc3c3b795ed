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

package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/informer"
	"github.com/ktechhub/configwatch/internal/source"
	"github.com/ktechhub/configwatch/internal/workload"
)

// Readable is a readiness check that passes while everything has been read and the API server answers:
// a missing permission, or an API server that is out of reach, fails it. It makes no call of its own.
func Readable(ctx context.Context, configWatches cache.Cache, sources *source.Cache, workloads *workload.Cache) healthz.Checker {
	told := &told{}
	return func(*http.Request) error {
		errs := []error{configWatchesRead(ctx, configWatches)}
		for _, kind := range []v1alpha1.SourceKind{v1alpha1.ConfigMap, v1alpha1.Secret} {
			errs = append(errs, sources.Readable(kind, ""))
		}
		for _, kind := range workload.Kinds() {
			errs = append(errs, workloads.Readable(kind, ""))
		}
		err := errors.Join(errs...)
		told.log(ctx, err)
		return err
	}
}

// told is what was last logged of the readiness: the probe's own answer withholds the reason.
type told struct {
	mu  sync.Mutex
	err string
}

// log logs what is in the way when it changes.
func (t *told) log(ctx context.Context, err error) {
	var now string
	if err != nil {
		now = err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch now {
	case t.err:
		return
	case "":
		log.FromContext(ctx).Info("Ready: everything can be read")
	default:
		log.FromContext(ctx).Info("Not ready", "reason", now)
	}
	t.err = now
}

func configWatchesRead(ctx context.Context, configWatches cache.Cache) error {
	inf, err := configWatches.GetInformer(ctx, &v1alpha1.ConfigWatch{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("configwatches: %w", err)
	}
	if !inf.HasSynced() {
		return fmt.Errorf("configwatches: %w", informer.ErrNotSynced)
	}
	return nil
}
