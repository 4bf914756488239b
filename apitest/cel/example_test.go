package cel_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/cel"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

func ExamplePolicies() {
	err := createWithPolicy(context.Background())
	fmt.Println(err)
	// Output: configmaps "web" is forbidden: ValidatingAdmissionPolicy 'labelled' with binding 'labelled' denied request: it has no label app
}

// createWithPolicy creates a ConfigMap in a server with a policy.
func createWithPolicy(ctx context.Context) error {
	server, err := apitest.Start(&apitest.Options{InMemory: true, Policies: &cel.Policies{}}) //nolint:contextcheck // the server runs until Close
	if err != nil {
		return err
	}
	defer server.Close()
	const manifests = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: labelled}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "has(object.metadata.labels) && 'app' in object.metadata.labels", message: it has no label app}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: labelled}
spec: {policyName: labelled, validationActions: [Deny]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: default}
`
	objects, err := manifest.Decode("manifests", strings.NewReader(manifests))
	if err != nil {
		return err
	}
	for _, obj := range objects {
		resource, err := server.Client().ForObject(ctx, obj.Object)
		if err != nil {
			return err
		}
		if _, err := resource.Create(ctx, obj.Object, nil); err != nil {
			return err
		}
	}
	return nil
}

// The rules of a definition are evaluated at each write.
func ExampleRules() {
	ctx := context.Background()
	definition, err := unstructured.Decode([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"size": {
				"type": "integer", "x-kubernetes-validations": [{"rule": "self % 2 == 1", "message": "must be odd"}]}}}}}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	server, err := apitest.Start(&apitest.Options{InMemory: true, Rules: cel.Rules{}, Objects: []*unstructured.Object{definition}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	widgets, err := server.Client().Resource(ctx, "widgets")
	if err != nil {
		log.Fatal(err)
	}
	widget := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}, "size": int64(2)}}
	_, err = widgets.Namespace("default").Create(ctx, widget, nil)
	fmt.Println(err)
	// Output: Widget.example.com "web" is invalid: size: Invalid value: 2: must be odd
}
