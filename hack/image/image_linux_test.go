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
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
)

const root = "../.."

var (
	dockerfile = filepath.Join(root, "Dockerfile")
	hostOnly   = "linux/" + runtime.GOARCH
)

func TestTheImage(t *testing.T) {
	opts := options{
		root: root, output: filepath.Join(t.TempDir(), "image"), platforms: []string{hostOnly},
		version: "v1.2.3", commit: "0123abcd", created: time.Unix(1_700_000_000, 0).UTC(),
	}
	digest, err := run(t.Context(), opts)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	image := imageIn(t, opts.output, digest)
	config, err := image.ConfigFile()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	folder := t.TempDir()
	size := unpack(t, image, folder)

	t.Run("is at most 60 MB large", func(t *testing.T) {
		NewWithT(t).Expect(size).To(BeNumerically("<=", 60_000_000))
	})
	t.Run("is what the Dockerfile says", func(t *testing.T) {
		g := NewWithT(t)
		text, err := os.ReadFile(dockerfile)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(ContainSubstring("USER " + config.Config.User + "\n"))
		g.Expect(string(text)).To(ContainSubstring(fmt.Sprintf("ENTRYPOINT [%q]\n", config.Config.Entrypoint[0])))
		filled := strings.NewReplacer("${VERSION}", opts.version, "${COMMIT}", opts.commit).Replace(string(text))
		for label, value := range config.Config.Labels {
			g.Expect(filled).To(ContainSubstring(fmt.Sprintf("%s=%q", label, value)))
		}
		g.Expect(strings.Count(filled, "org.opencontainers.image.")).To(Equal(len(config.Config.Labels)))
	})
	t.Run("runs as somebody who isn't root", func(t *testing.T) {
		NewWithT(t).Expect(config.Config.User).To(Equal("65532:65532"))
	})
	t.Run("is for the platform, and of the time that it is told", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(config.OS + "/" + config.Architecture).To(Equal(hostOnly))
		g.Expect(config.Created.Time).To(BeTemporally("==", opts.created))
	})
	t.Run("has certificates and time zones", func(t *testing.T) {
		g := NewWithT(t)
		certificates, err := os.ReadFile(filepath.Join(folder, certificatesFile))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes.Count(certificates, []byte("BEGIN CERTIFICATE"))).To(BeNumerically(">", 100))
		zone, err := os.ReadFile(filepath.Join(folder, "usr/share/zoneinfo/Europe/Berlin"))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = time.LoadLocationFromTZData("Europe/Berlin", zone)
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("is the same when it is built again", func(t *testing.T) {
		g := NewWithT(t)
		again := opts
		again.output = filepath.Join(t.TempDir(), "again")
		g.Expect(run(t.Context(), again)).To(Equal(digest))
	})
	t.Run("is pushed as it is", func(t *testing.T) {
		g := NewWithT(t)
		server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
		defer server.Close()
		pushed := opts
		pushed.push = strings.TrimPrefix(server.URL, "http://") + "/configwatch:v1.2.3"
		g.Expect(push(t.Context(), pushed, digest)).To(Succeed())

		ref, err := name.NewTag(pushed.push)
		g.Expect(err).NotTo(HaveOccurred())
		index, err := remote.Index(ref)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(index.Digest()).To(Equal(digest))

		pushed.push = "without-a-tag"
		g.Expect(push(t.Context(), pushed, digest)).To(MatchError(ContainSubstring("without-a-tag")))
	})
	t.Run("starts from its root file system alone", func(t *testing.T) { startIn(t, folder, opts, config) })
}

func TestAnImageForAPlatformThatIsNone(t *testing.T) {
	_, err := run(t.Context(), options{root: root, output: t.TempDir(), platforms: []string{"linux/amd64/v1/x"}})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`the platform "linux/amd64/v1/x"`)))
}

// startIn runs the entrypoint with the folder as its root, and waits for its first word to the API server.
func startIn(t *testing.T, folder string, opts options, config *v1.ConfigFile) {
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root of a process")
	}
	g := NewWithT(t)
	start := func(args ...string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), config.Config.Entrypoint[0], args...)
		command.Dir = config.Config.WorkingDir
		command.Env = append(config.Config.Env, "POD_NAMESPACE=configwatch-system")
		command.SysProcAttr = &syscall.SysProcAttr{
			Chroot: folder, Credential: &syscall.Credential{Uid: nonroot, Gid: nonroot}, Pdeathsig: syscall.SIGKILL,
		}
		return command
	}
	version, err := start("--version").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(version))
	g.Expect(string(version)).To(Equal(opts.version + "\n"))

	asked, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/namespaces/configwatch-system/secrets/configwatch-hash-key" {
			cancel()
		}
	}))
	defer server.Close()
	kubeconfig := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, server.URL)
	g.Expect(os.WriteFile(filepath.Join(folder, "kubeconfig"), []byte(kubeconfig), 0o644)).To(Succeed())
	command := start("--kubeconfig=/kubeconfig", "--health-probe-bind-address=0")
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	g.Expect(command.Start()).To(Succeed())
	defer func() {
		_ = command.Process.Kill() // fails only if it is gone already
		_ = command.Wait()         // it was killed
		if t.Failed() {
			t.Log(said.String())
		}
	}()
	g.Eventually(asked.Done()).WithTimeout(time.Minute).Should(BeClosed())
}

// imageIn is the only image of a layout, whose index has a digest.
func imageIn(t *testing.T, folder string, digest v1.Hash) v1.Image {
	t.Helper()
	g := NewWithT(t)
	all, err := layout.ImageIndexFromPath(folder)
	g.Expect(err).NotTo(HaveOccurred())
	index, err := all.ImageIndex(digest)
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.Manifests).To(HaveExactElements(HaveField("Platform.String()", hostOnly)))
	image, err := index.Image(manifest.Manifests[0].Digest)
	g.Expect(err).NotTo(HaveOccurred())
	return image
}

// unpack writes the root file system of an image, and is its size.
func unpack(t *testing.T, image v1.Image, folder string) (size int64) {
	t.Helper()
	g := NewWithT(t)
	content := mutate.Extract(image)
	defer content.Close()
	reader := tar.NewReader(content)
	var folders []*tar.Header
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(folder, header.Name)
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		if header.Typeflag == tar.TypeDir {
			folders = append(folders, header)
			g.Expect(os.MkdirAll(file, 0o755)).To(Succeed())
			continue
		}
		data, err := io.ReadAll(reader)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(file, data, os.FileMode(header.Mode))).To(Succeed())
		size += header.Size
	}
	for _, header := range folders {
		unpacked := filepath.Join(folder, header.Name)
		g.Expect(os.Chmod(unpacked, header.FileInfo().Mode())).To(Succeed())
		if os.Geteuid() == 0 {
			g.Expect(os.Chown(unpacked, header.Uid, header.Gid)).To(Succeed())
		}
	}
	return size
}
