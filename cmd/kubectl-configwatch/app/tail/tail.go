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

package tail

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/feed/observer"
)

const (
	allKinds = "all"
	text     = "text"
	asJSON   = "json"

	// buffer is how many changes wait while the terminal, or whoever reads the output, is slow.
	buffer = 4096
)

const examples = `  # Every change in the namespace of the current context
  kubectl configwatch tail

  # ConfigMaps labelled app=demo, in all namespaces, beginning with those that are there
  kubectl configwatch tail -A -l app=demo --kind ConfigMap --initial

  # Only what appears or goes, as CloudEvents
  kubectl configwatch tail -n shop --events Added,Deleted -o json

  # How many there are, and how many changes there were
  kubectl configwatch tail -n shop --count

  # The same from an operator's stream, which takes no more than the right to watch
  kubectl -n configwatch-system port-forward service/configwatch-stream 8444 &
  kubectl configwatch tail -n shop --kind ConfigMap --stream https://localhost:8444 \
    --stream-server-name configwatch-stream.configwatch-system.svc --stream-ca ca.crt`

const long = `Show changes of ConfigMaps and Secrets as they happen: their keys, never their values.

A change is one of content; of labels and other metadata only if an object begins or ends to match the
selector. Objects annotated configwatch.ktechhub.io/ignore: "true", and Helm's release Secrets, are left
out, as by the operator. No operator is needed: the API server is read with your own rights, which have to
include list and watch. Hashes of Secrets are made with a key that is forgotten when the command ends.

With --stream, an operator's HTTP stream is read instead, as the user of the kubeconfig's bearer token. (The
flag is not --server, as kubectl's own is the API server.) A lost connection is made again, and goes on where
it was lost; where that can't be done, a Gap says so.`

// Options are what a tail shows, and how.
type Options struct {
	genericiooptions.IOStreams

	AllNamespaces bool
	Selector      string
	Kind          string
	Events        []string
	Count         bool
	Initial       bool
	Output        string
	Stream        string
	StreamCA      string
	StreamName    string

	config    *rest.Config
	client    kubernetes.Interface
	namespace string // empty for all
	kinds     []v1alpha1.SourceKind
	events    []feed.EventType
}

// NewCommand is the command, which finds the API server by the getter.
func NewCommand(getter genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, Kind: allKinds, Output: text}
	command := &cobra.Command{
		Use:     "tail",
		Short:   "Show changes of ConfigMaps and Secrets as they happen",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.Complete(getter); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(command.Context())
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", o.AllNamespaces,
		"Watch all namespaces, whatever --namespace says.")
	flags.StringVarP(&o.Selector, "selector", "l", o.Selector,
		"Watch only objects whose labels match, such as app=demo.")
	flags.StringVar(&o.Kind, "kind", o.Kind,
		"Watch ConfigMap, Secret or all.")
	flags.StringSliceVar(&o.Events, "events", o.Events,
		"Show only these, of Added, Modified and Deleted. (default all of them)")
	flags.BoolVar(&o.Count, "count", o.Count,
		"Show how many objects there are and how many changes there were, instead of the changes.")
	flags.BoolVar(&o.Initial, "initial", o.Initial,
		"Show the objects that are there first.")
	flags.StringVarP(&o.Output, "output", "o", o.Output,
		"Write text or json; json is a CloudEvent a line.")
	flags.StringVar(&o.Stream, "stream", o.Stream,
		"Read the stream of an operator at this URL, such as https://localhost:8444, instead of the API server.")
	flags.StringVar(&o.StreamCA, "stream-ca", o.StreamCA,
		"A file with the certificates, in PEM, that verify the stream's. (default the system's)")
	flags.StringVar(&o.StreamName, "stream-server-name", o.StreamName,
		"The host that the stream's certificate is for, if it is not that of the URL.")
	return command
}

// Complete finds the API server and the namespace.
func (o *Options) Complete(getter genericclioptions.RESTClientGetter) error {
	var err error
	if o.config, err = getter.ToRESTConfig(); err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	if o.AllNamespaces {
		return nil
	}
	if o.namespace, _, err = getter.ToRawKubeConfigLoader().Namespace(); err != nil {
		return fmt.Errorf("finding the namespace: %w", err)
	}
	return nil
}

// Validate checks what the flags say, and says what to write instead.
func (o *Options) Validate() (err error) {
	if o.kinds, err = kindsOf(o.Kind); err != nil {
		return err
	}
	if o.events, err = eventsOf(o.Events); err != nil {
		return err
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		return fmt.Errorf("--selector %q can't be used: %w", o.Selector, err)
	}
	if o.Output != text && o.Output != asJSON {
		return fmt.Errorf("--output must be %s or %s, not %q", text, asJSON, o.Output)
	}
	return o.validateStream()
}

// Run shows changes until the context is done, which is no error.
func (o *Options) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.Discard()) // the user is told of errors, once
	if o.Stream != "" {
		return o.runStream(ctx)
	}
	return o.runAPIServer(ctx)
}

// runAPIServer shows what the user may list and watch.
func (o *Options) runAPIServer(ctx context.Context) (err error) {
	config := rest.CopyConfig(o.config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if o.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("making the client: %w", err)
	}
	watched, err := newSources(o.client, o.namespace, o.kinds, o.Selector)
	if err != nil {
		return err
	}
	broker := feed.NewBroker(clock.RealClock{})
	if err := broker.Follow(watched, []string{o.namespace}); err != nil {
		return err
	}
	reporter := newReporter(o, watched)
	subscription, err := broker.Subscribe(feed.Filter{Initial: o.Initial || o.Count}, buffer)
	if err != nil {
		return err
	}
	defer subscription.Close()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return watched.Start(ctx) })
	running.Go(func() error { return reporter.run(ctx) })
	running.Go(func() error { return observer.Run(ctx, subscription, o.observer()) })
	return running.Wait()
}

// observer is made of the three reference observers: a logger of what the filter lets through, of changes
// or of what the counter counts.
func (o *Options) observer() observer.Observer {
	logger := observer.Logger{Out: o.Out, Line: observer.Text}
	if o.Output == asJSON {
		logger.Line = observer.JSON
	}
	if !o.Count {
		return observer.Filter{Events: o.events, News: !o.Initial, Next: logger}
	}
	counter := &observer.Counter{}
	logger.Line = counter.Text
	if o.Output == asJSON {
		logger.Line = counter.JSON
	}
	return observer.Each{counter, observer.Filter{Events: o.events, News: true, Next: logger}}
}

func kindsOf(name string) ([]v1alpha1.SourceKind, error) {
	both := []v1alpha1.SourceKind{v1alpha1.ConfigMap, v1alpha1.Secret}
	if strings.EqualFold(name, allKinds) {
		return both, nil
	}
	for _, kind := range both {
		if strings.EqualFold(name, string(kind)) {
			return []v1alpha1.SourceKind{kind}, nil
		}
	}
	return nil, fmt.Errorf("--kind must be %s, %s or %s, not %q", v1alpha1.ConfigMap, v1alpha1.Secret, allKinds, name)
}

func eventsOf(names []string) ([]feed.EventType, error) {
	all := []feed.EventType{feed.Added, feed.Modified, feed.Deleted}
	if len(names) == 0 {
		return all, nil
	}
	var events []feed.EventType
	for _, name := range names {
		known := len(events)
		for _, event := range all {
			if strings.EqualFold(name, string(event)) {
				events = append(events, event)
			}
		}
		if len(events) == known {
			return nil, fmt.Errorf("--events must be of %s, %s and %s, not %q", feed.Added, feed.Modified, feed.Deleted, name)
		}
	}
	return events, nil
}
