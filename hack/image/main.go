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

// Command image writes the image that the Dockerfile builds as an OCI layout, without a container engine: one image
// index with an image for each platform. What goes into it is pinned by the tree, and has one time, so that the same
// commit gives the same digest. Certificates are Mozilla's, and time zones those of the Go release, while the
// Dockerfile has both from distroless/static, which has Debian's.
//
//	go run ./hack/image --output dist/image --version v0.1.0
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// options are what is built, and where to.
type options struct {
	// root is the folder of the repository.
	root string
	// output is the folder of the layout, which is replaced.
	output string
	// platforms are those to build for, such as linux/arm64.
	platforms []string
	// version and commit are what the manager and the labels tell.
	version, commit string
	// push is the image that the layout is pushed as, with a tag; empty: it isn't.
	push string
	// created is the time of all that the image holds.
	created time.Time
}

func main() {
	var opts options
	var created int64
	var platforms string
	flag.StringVar(&opts.root, "root", ".", "The folder of the repository.")
	flag.StringVar(&opts.output, "output", "dist/image", "The folder of the layout, which is replaced.")
	flag.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "The platforms, separated by commas.")
	flag.StringVar(&opts.version, "version", "unknown", "The version, with a leading v.")
	flag.StringVar(&opts.commit, "commit", "unknown", "The commit.")
	flag.StringVar(&opts.push, "push", "", "What to push the image as, with a tag, with the credentials of docker login.")
	flag.Int64Var(&created, "created", 0, "The time of all that the image holds, in seconds since 1970.")
	flag.Parse()
	opts.platforms = strings.Split(platforms, ",")
	opts.created = time.Unix(created, 0).UTC()
	digest, err := run(context.Background(), opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the image:", err)
		os.Exit(1)
	}
	if opts.push != "" {
		err = push(context.Background(), opts, digest)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pushing the image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}
