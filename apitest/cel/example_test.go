package cel_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/cel"
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
