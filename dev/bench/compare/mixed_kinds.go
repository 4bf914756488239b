//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/transport"
)

// customKinds is the number of kinds of custom resources in a mixed set.
const customKinds = 50

// minExamples is the minimum number of objects in the corpus for a kind in a mixed set.
const minExamples = 3

// customKind is a kind of the corpus with its objects. Its definition permits any fields, because the corpus's definition may
// reject examples of different versions.
type customKind struct {
	group, plural, kind string
	examples            []map[string]any // without metadata
}

// resource returns the name of the resource, as of schema.ParseResourceArg.
func (k customKind) resource() string { return k.plural + ".v1." + k.group }

func (k customKind) definition() []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":"%[2]s.%[1]s"},"spec":{"group":%[1]q,"scope":"Namespaced","names":{"plural":%[2]q,"singular":%[3]q,"kind":%[4]q},`+
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
		k.group, k.plural, strings.ToLower(k.kind), k.kind)
}

// corpusFile is a definition or an object of the corpus.
type corpusFile struct{ Name, Group, Kind, File string }

// definitions is the index of the corpus: its kinds, with their objects.
type definitions struct {
	dir           string
	CRDs, Objects []corpusFile
}

// readDefinitions reads the index of the corpus.
func readDefinitions() (*definitions, error) {
	dir := os.Getenv("ANYKIND_CORPUS")
	if dir == "" {
		return nil, errors.New("missing ANYKIND_CORPUS, the folder with custom resources of public projects (run `make bench`)")
	}
	d := &definitions{dir: dir}
	return d, readJSON(filepath.Join(dir, "index.json"), d)
}

// kind returns the kind of a definition with its objects.
func (d *definitions) kind(crd corpusFile) (customKind, error) {
	plural, _, _ := strings.Cut(crd.Name, ".")
	// A separate group: the definition differs from the corpus's definition, as created by further tests.
	kind := customKind{group: crd.Group + ".bench", plural: plural, kind: crd.Kind}
	for _, example := range d.Objects {
		if example.Group != crd.Group || example.Kind != crd.Kind {
			continue
		}
		var fields map[string]any
		if err := readJSON(filepath.Join(d.dir, filepath.FromSlash(example.File)), &fields); err != nil {
			return kind, err
		}
		delete(fields, "metadata")
		kind.examples = append(kind.examples, fields)
	}
	return kind, nil
}

// readKinds returns kinds of the corpus, evenly spread.
func readKinds(count int) ([]customKind, error) {
	d, err := readDefinitions()
	if err != nil {
		return nil, err
	}
	examples := map[[2]string]int{}
	for _, f := range d.Objects {
		examples[[2]string{f.Group, f.Kind}]++
	}
	defined := slices.DeleteFunc(slices.Clone(d.CRDs), func(f corpusFile) bool { return examples[[2]string{f.Group, f.Kind}] < minExamples })
	if len(defined) < count {
		return nil, fmt.Errorf("the corpus in %s has %d kinds with %d objects, want %d", d.dir, len(defined), minExamples, count)
	}
	kinds := make([]customKind, count)
	for i := range kinds {
		if kinds[i], err = d.kind(defined[i*len(defined)/count]); err != nil {
			return nil, err
		}
	}
	return kinds, nil
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the corpus: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read %s of the corpus: %w", path, err)
	}
	return nil
}

// defineCorpus creates count definitions of the corpus, with the kind customName, and waits until all are served.
func (s *server) defineCorpus(ctx context.Context, count int) error {
	d, err := readDefinitions()
	if err != nil {
		return err
	}
	if len(d.CRDs) < count {
		return fmt.Errorf("the corpus in %s has %d definitions, want %d", d.dir, len(d.CRDs), count)
	}
	isCustom := func(f corpusFile) bool { return f.Group == customGroup && f.Kind == customName }
	slices.SortStableFunc(d.CRDs, func(a, b corpusFile) int {
		switch {
		case isCustom(a) == isCustom(b):
			return 0
		case isCustom(a):
			return -1
		}
		return 1
	})
	names := make([]string, count)
	err = s.each(ctx, count, func(ctx context.Context, i int) error {
		names[i] = d.CRDs[i].Name
		body, err := d.definition(d.CRDs[i])
		if err != nil {
			return err
		}
		return s.write(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, definitionsTimeout)
	defer cancel()
	if _, err := s.client.WaitForResources(ctx, names...); err != nil {
		return err
	}
	return s.waitForOpenAPI(ctx)
}

// waitForOpenAPI waits until OpenAPI has the kind customName. It follows discovery some time later.
func (s *server) waitForOpenAPI(ctx context.Context) error {
	for {
		response, err := s.conn.Do(ctx, &transport.Request{Path: "/openapi/v3/apis/" + customGroup + "/v1alpha1"})
		if err == nil {
			document, readErr := io.ReadAll(response.Body)
			if err := errors.Join(readErr, response.Body.Close()); err != nil {
				return err
			}
			if bytes.Contains(document, []byte(`"kind":"`+customName+`"`)) {
				return nil
			}
		} else if !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// definition returns a definition of the corpus without its conversion webhook.
func (d *definitions) definition(crd corpusFile) ([]byte, error) {
	var fields map[string]any
	if err := readJSON(filepath.Join(d.dir, filepath.FromSlash(crd.File)), &fields); err != nil {
		return nil, err
	}
	if spec, ok := fields["spec"].(map[string]any); ok {
		delete(spec, "conversion")
	}
	delete(fields, "status")
	return json.Marshal(fields)
}
