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

package stream

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ktechhub/configwatch/api/v1alpha1"
	"github.com/ktechhub/configwatch/internal/feed"
)

// query is what a client asks for.
type query struct {
	filter feed.Filter
	// data asks for the data of ConfigMaps.
	data bool
}

// parseQuery reads the parameters of a URL, in their encoded form. It is strict: whoever misspells one, and
// would get more or less than they think, is told so. An empty namespace stands for all.
func parseQuery(namespace, encoded string) (query, error) {
	values, err := url.ParseQuery(encoded)
	if err != nil {
		return query{}, fmt.Errorf("the query of the URL can't be read: %w", err)
	}
	q := query{filter: feed.Filter{Namespace: namespace}}
	if namespace != "" {
		if reasons := validation.IsDNS1123Label(namespace); len(reasons) > 0 {
			return query{}, fmt.Errorf("%.64q is not the name of a namespace: %s", namespace, reasons[0])
		}
	}
	for _, parameter := range sortedKeys(values) {
		given := values[parameter]
		switch {
		case len(given) > 1:
			return query{}, fmt.Errorf("%.64q is given %d times: give it once", parameter, len(given))
		case given[0] == "":
			return query{}, fmt.Errorf("%.64q has no value: give it one, or leave it out", parameter)
		}
		if err := q.set(parameter, given[0]); err != nil {
			return query{}, err
		}
	}
	if q.data && q.filter.Kind != v1alpha1.ConfigMap {
		return query{}, errors.New("data=true is only for ConfigMaps: write kind=ConfigMap too, or leave data out")
	}
	return q, nil
}

func sortedKeys(values url.Values) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (q *query) set(parameter, value string) (err error) {
	switch parameter {
	case "kind":
		q.filter.Kind, err = parseKind(value)
	case "name":
		q.filter.Name, err = parseName(value)
	case "labelSelector":
		q.filter.Selector, err = parseSelector(value)
	case "events":
		q.filter.Events, err = parseEvents(value)
	case "initial":
		q.filter.Initial, err = parseFlag(parameter, value)
	case "data":
		q.data, err = parseFlag(parameter, value)
	case "access_token": // its value must not show up in an answer, a log or an address
		err = errors.New("a token is taken from the header Authorization only, and access_token is not a parameter")
	default:
		err = fmt.Errorf("%.64q is not a parameter: use kind, labelSelector, name, events, initial and data", parameter)
	}
	return err
}

func parseKind(value string) (v1alpha1.SourceKind, error) {
	switch kind := v1alpha1.SourceKind(value); kind {
	case v1alpha1.ConfigMap, v1alpha1.Secret:
		return kind, nil
	default:
		return "", fmt.Errorf("kind is %.64q: write ConfigMap or Secret, or leave it out for both", value)
	}
}

func parseName(value string) (string, error) {
	if reasons := validation.IsDNS1123Subdomain(value); len(reasons) > 0 {
		return "", fmt.Errorf("name is %.64q, which no object can have: %s", value, reasons[0])
	}
	return value, nil
}

func parseSelector(value string) (labels.Selector, error) {
	selector, err := labels.Parse(value)
	if err != nil {
		return nil, fmt.Errorf("labelSelector is %.64q, which is none: %w", value, err)
	}
	return selector, nil
}

func parseEvents(value string) ([]feed.EventType, error) {
	var events []feed.EventType
	for name := range strings.SplitSeq(value, ",") {
		event := feed.EventType(name)
		switch event {
		case feed.Added, feed.Modified, feed.Deleted:
		default:
			return nil, fmt.Errorf("events has %.64q: write some of Added, Modified and Deleted, separated by commas", name)
		}
		if slices.Contains(events, event) {
			return nil, fmt.Errorf("events has %s twice: write it once", event)
		}
		events = append(events, event)
	}
	return events, nil
}

func parseFlag(parameter, value string) (bool, error) {
	switch value {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, fmt.Errorf("%s is %.64q: write true or false", parameter, value)
	}
}
