package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

const objects = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io, annotations: {api-approved.kubernetes.io: "none"}}
spec:
  group: cert-manager.io
  names: {plural: certificates, singular: certificate, kind: Certificate, listKind: CertificateList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Secret, type: string, jsonPath: .spec.secretName}]
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, labels: {app: web}}
spec: {secretName: web-tls}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: api}
spec: {secretName: api-tls}
`

func TestCertificates_Formats(t *testing.T) {
	c := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, c)
	client.DeleteAtEnd(t, client.Resource(t, c, "crd"), "certificates.cert-manager.io")
	c = c.WithDefaults(&dynamic.Defaults{Namespace: namespace, FieldManager: "test"})
	for object, err := range c.ForObjects(t.Context(), unstructured.NewYAMLDecoder(strings.NewReader(objects)).All()) {
		require.NoError(t, err)
		_, err = object.Resource.Apply(t.Context(), object.Object, &metav1.ApplyOptions{Force: true})
		require.NoError(t, err)
	}
	program := filepath.Join(t.TempDir(), "certificates")
	output, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", output)
	for _, example := range []struct{ args, want string }{
		{"", "NAME   SECRET\napi    api-tls\nweb    web-tls\n"},
		{"-l app=web --no-headers", "web   web-tls\n"},
		{"-o name --sort-by .spec.secretName", "certificate.cert-manager.io/api\ncertificate.cert-manager.io/web\n"},
		{"-o jsonpath={.items[*].spec.secretName}", "api-tls web-tls"},
		{"-A --where=.metadata.name==\"web\"", "NAMESPACE    NAME   SECRET\n" + namespace + "   web    web-tls\n"},
	} {
		args := append([]string{"--kubeconfig", cluster.Kubeconfig(t), "-n", namespace, "--cache-dir", t.TempDir()}, strings.Fields(example.args)...)
		output, err := exec.Command(program, args...).CombinedOutput()
		require.NoError(t, err, "%s", output)
		want := strings.Replace(example.want, "NAMESPACE    ", "NAMESPACE"+strings.Repeat(" ", max(len(namespace)+3-len("NAMESPACE"), 3)), 1)
		assert.Equal(t, want, string(output), "%s", example.args)
	}
}
