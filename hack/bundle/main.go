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

// Command bundle writes the OLM bundle, bundle/ and bundle.Dockerfile, and the file-based catalogue that offers it,
// catalog/, from what kustomize makes of config/manifests. Files are named and laid out as operator-sdk does it.
//
//	go run ./hack/bundle
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// options are what is generated, and for what.
type options struct {
	// root is the folder of the repository.
	root string
	// version is that of the release, without a leading "v". Empty: the one in the file VERSION.
	version string
	// image is that of the operator. Empty: the one that the manifests name.
	image string
	// bundleImage is that of the bundle, which the catalogue refers to. Empty: next to that of the operator.
	bundleImage string
}

func main() {
	var opts options
	flag.StringVar(&opts.root, "root", ".", "The folder of the repository.")
	flag.StringVar(&opts.version, "version", "", "The version of the release; the default is in the file VERSION.")
	flag.StringVar(&opts.image, "image", "", "The image of the operator; the default is in config/manager.")
	flag.StringVar(&opts.bundleImage, "bundle-image", "",
		"The image of the bundle; the default is the operator's, with -bundle appended to its name.")
	flag.Parse()
	if err := run(opts, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(opts options, now time.Time) error {
	files, err := generate(opts, now)
	if err != nil {
		return fmt.Errorf("generating the bundle: %w", err)
	}
	// What isn't generated any more must go.
	for _, folder := range []string{bundleFolder, catalogFolder} {
		if err := os.RemoveAll(filepath.Join(opts.root, folder)); err != nil {
			return fmt.Errorf("removing the old bundle: %w", err)
		}
	}
	for name, content := range files {
		file := filepath.Join(opts.root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
	}
	return nil
}

// complete fills in the defaults; image is the one that the manifests name.
func (o *options) complete(image string) error {
	if o.version == "" {
		text, err := os.ReadFile(filepath.Join(o.root, "VERSION"))
		if err != nil {
			return fmt.Errorf("finding the version: %w", err)
		}
		o.version = strings.TrimSpace(string(text))
	}
	if _, err := version.ParseSemantic(o.version); err != nil {
		return fmt.Errorf("the version is not a semantic one: %w", err)
	}
	o.image = cmp.Or(o.image, image)
	if o.bundleImage == "" {
		name := o.image
		if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
			name = name[:colon]
		}
		o.bundleImage = name + "-bundle:v" + o.version
	}
	return nil
}
