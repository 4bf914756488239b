package definitioncheck_test

import (
	"context"
	"fmt"
	"log"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/definitioncheck"
	"github.com/anykind/anykind/unstructured"
)

// A new version of a definition, and the stored objects that it would reject. With Rules of package apitest/cel, CEL rules are
// evaluated, too.
func ExampleCheck() {
	ctx := context.Background()
	const text = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
		"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
				"size": {"type": "integer", "maximum": %d}}}}}]}}`
	definition := func(maximum int) *unstructured.Object {
		decoded, err := unstructured.Decode(fmt.Appendf(nil, text, maximum))
		if err != nil {
			log.Fatal(err)
		}
		return decoded
	}
	widget := &unstructured.Object{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "default", "name": "web"}, "size": int64(7),
	}}
	server, err := apitest.Start(&apitest.Options{InMemory: true, Objects: []*unstructured.Object{definition(10), widget}}) // in place of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	report, err := definitioncheck.Check(ctx, server.Client(), definition(5), nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, finding := range report.Definition {
		fmt.Println(finding)
	}
	for _, finding := range report.Findings {
		fmt.Println(finding)
	}
	for _, text := range report.NotChecked {
		fmt.Println("not checked:", text)
	}
	// Output:
	// v1: Invalid size: Invalid value: size in body should be less than or equal to 5 (1 objects: default/web)
	// not checked: admission webhooks, admission policies and quotas
}
