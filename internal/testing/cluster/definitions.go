package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/testing/corpus"
)

// SendFunc sends a request to the sandbox's API server as an administrator and returns the body of the response. A GET accepts
// aggregated discovery.
type SendFunc func(ctx context.Context, method, path, body string) (string, error)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	definedLabel    = "defined-by-test"
	// The API server computes the OpenAPI documents again after each definition.
	patience = 10 * time.Minute
)

// Define creates CustomResourceDefinitions of the corpus, without conversion webhooks, and waits until discovery serves all of
// them. They are deleted when the test ends.
func Define(t testing.TB, send SendFunc, definitions []corpus.File) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// The API server ends a request after a minute. The next one deletes the rest.
		for {
			_, err := send(ctx, "DELETE", definitionsPath+"?labelSelector="+definedLabel, "{}")
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Errorf("delete the definitions: %v", err)
				break
			}
			time.Sleep(time.Second)
		}
		// Later tests may compare two lists. Nothing may change between the lists.
		waitForKinds(ctx, t, send, definitions, 0)
	})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := worker; n < len(definitions); n += 8 {
				one := definitions[n]
				body, err := prepareDefinition(one)
				if err == nil {
					_, err = send(t.Context(), "POST", definitionsPath, body)
				}
				if err != nil {
					t.Errorf("create the definition %s of %s: %v", one.Name, one.Source, err)
				}
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	waitForKinds(ctx, t, send, definitions, len(definitions))
}

// prepareDefinition adds the test's label and removes conversion and status.
func prepareDefinition(one corpus.File) (string, error) {
	var definition map[string]any
	if err := json.Unmarshal(one.JSON, &definition); err != nil {
		return "", err
	}
	metadata, _ := definition["metadata"].(map[string]any)
	spec, _ := definition["spec"].(map[string]any)
	if metadata == nil || spec == nil {
		return "", fmt.Errorf("%s has no metadata or no spec", one.File)
	}
	metadata["labels"] = map[string]string{definedLabel: ""}
	delete(spec, "conversion")
	delete(definition, "status")
	text, err := json.Marshal(definition)
	return string(text), err
}

// waitForKinds waits until discovery serves exactly count of the kinds.
func waitForKinds(ctx context.Context, t testing.TB, send SendFunc, definitions []corpus.File, count int) {
	t.Helper()
	for {
		response, err := send(ctx, "GET", "/apis", "")
		var served int
		if err == nil {
			served, err = countServed(response, definitions)
		}
		if err == nil && served == count {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("wait for %d kinds: %d are served: %v", count, served, err)
		}
	}
}

// countServed returns the number of definitions in an aggregated discovery document.
func countServed(response string, definitions []corpus.File) (count int, err error) {
	var groups struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Resources []struct{ ResponseKind struct{ Kind string } }
			}
		}
	}
	if err := json.Unmarshal([]byte(response), &groups); err != nil {
		return 0, err
	}
	served := map[[2]string]bool{}
	for _, group := range groups.Items {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				served[[2]string{group.Metadata.Name, resource.ResponseKind.Kind}] = true
			}
		}
	}
	for _, one := range definitions {
		if served[[2]string{one.Group, one.Kind}] {
			count++
		}
	}
	return count, nil
}
