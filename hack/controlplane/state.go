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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	statePrefix = "configwatch-controlplane-"
	lockName    = "lock"
)

var errLocked = errors.New("locked by another process")

// tryLock locks the file at path, made if need be, until the result is closed or the process ends.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return file, nil
}

// newStateFolder makes a temporary folder, locked for as long as its plane lives, and removes those whose process was
// killed before it could: etcd's files take more than 100 MB each.
func newStateFolder() (dir string, lock *os.File, err error) {
	removeAbandoned()
	dir, err = os.MkdirTemp("", statePrefix)
	if err != nil {
		return "", nil, fmt.Errorf("making the state folder: %w", err)
	}
	// Locked before it has its name, so that no other process takes the folder for an abandoned one.
	unnamed := filepath.Join(dir, "."+lockName)
	lock, err = tryLock(unnamed)
	if err != nil {
		return "", nil, err
	}
	return dir, lock, os.Rename(unnamed, filepath.Join(dir, lockName))
}

func removeAbandoned() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), statePrefix+"*", lockName)) // the pattern is well-formed
	for _, path := range locks {
		lock, err := tryLock(path)
		if err != nil {
			continue // in use, or another user's
		}
		_ = os.RemoveAll(filepath.Dir(path)) // the next start tries again
		_ = lock.Close()
	}
}
