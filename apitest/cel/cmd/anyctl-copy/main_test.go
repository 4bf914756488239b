package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startCluster starts a server in place of a cluster and returns its kubeconfig.
func startCluster(t *testing.T) (kubeconfig string) {
	t.Helper()
	var objects []*unstructured.Object
	for obj, err := range unstructured.NewYAMLDecoder(strings.NewReader(`
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, data: {password: cGFzcw==}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: labelled}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "has(object.metadata.labels)", message: it has no labels}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: labelled}
spec: {policyName: labelled, validationActions: [Deny]}
`)).All() {
		require.NoError(t, err)
		objects = append(objects, obj)
	}
	return apitest.NewServer(t, &apitest.Options{Objects: objects, OnNotValidated: func(apitest.Request, string) {}}).Kubeconfig(t)
}

func TestRun_SaveAndServe(t *testing.T) {
	kubeconfig := startCluster(t)
	file := filepath.Join(t.TempDir(), "cluster.copy")
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"save", "--kubeconfig", kubeconfig, file}, nil, &stdout, &stderr), stderr.String())
	assert.Contains(t, stdout.String(), " resources copied to "+file)
	assert.Contains(t, stderr.String(), "not copied: leases.coordination.k8s.io: ")
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	for name, args := range map[string][]string{"of a file": {"serve", file}, "of the cluster": {"serve", "--kubeconfig", kubeconfig}} {
		t.Run(name, func(t *testing.T) {
			stdin, closeStdin := io.Pipe()
			lines, output := io.Pipe()
			done := make(chan int, 1)
			go func() { done <- run(t.Context(), args, stdin, output, io.Discard) }()
			path, err := bufio.NewReader(lines).ReadString('\n')
			require.NoError(t, err)
			checkCopy(t, strings.TrimSpace(path))
			require.NoError(t, closeStdin.Close())
			assert.Zero(t, <-done)
			_, err = os.Stat(strings.TrimSpace(path))
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// checkCopy reads an object of a copy, and has its admission policy evaluated.
func checkCopy(t *testing.T, kubeconfig string) {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: kubeconfig})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	defer client.Close()
	configMaps, err := client.Resource(t.Context(), "configmaps")
	require.NoError(t, err)
	obj, err := configMaps.Namespace("default").Get(t.Context(), "a", nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "b"}, obj.Object["data"])
	obj.SetName("b")
	obj.SetResourceVersion("")
	_, err = configMaps.Namespace("default").Create(t.Context(), obj, nil)
	require.ErrorContains(t, err, "denied request: it has no labels")
}

func TestRun_Rehearse(t *testing.T) {
	kubeconfig := startCluster(t)
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"rehearse", "--kubeconfig", kubeconfig, "--", "sh", "-c", "echo started; exit 3"}, nil, &stdout, &stderr)
	require.Zero(t, code, stderr.String())
	assert.Contains(t, stderr.String(), "started\n")
	assert.Contains(t, stdout.String(), "The controller ended after ")
	assert.Contains(t, stdout.String(), "exit status 3")

	stdout.Reset()
	code = run(t.Context(), []string{"rehearse", "--kubeconfig", kubeconfig, "--baseline", "false", "-o", "json", "--", "false"}, nil, &stdout, &stderr)
	require.Zero(t, code, stderr.String())
	assert.Contains(t, stdout.String(), `"outcome": "ended"`)
}

func TestRun_WrongCommandLines(t *testing.T) {
	for line, code := range map[string]int{
		"": 2, "other": 2, "save": 2, "save a b": 2, "serve -unknown": 2, "rehearse": 2, "rehearse -o yaml -- true": 2, "crd-check": 2, "crd-check -f a -o yaml": 2, "crd-check -f /does/not/exist": 1, "save -h": 0,
		"serve /does/not/exist": 1, "save --kubeconfig /does/not/exist f": 1,
	} {
		var stderr bytes.Buffer
		assert.Equal(t, code, run(context.Background(), strings.Fields(line), strings.NewReader(""), io.Discard, &stderr), "%q", line)
		assert.NotEmpty(t, stderr.String(), "%q", line)
	}
}

func TestRun_CRDCheck(t *testing.T) {
	kubeconfig := startCluster(t)
	definition := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gears.example.com}, spec: {group: example.com, scope: Namespaced,
  names: {plural: gears, kind: Gear}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object,
  properties: {teeth: {type: integer}, color: {type: string}}}}}}}]}}`
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: kubeconfig})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	defer client.Close()
	for _, text := range []string{definition, `{apiVersion: example.com/v1, kind: Gear, metadata: {name: a, namespace: default}, spec: {teeth: 3, color: red}}`} {
		for obj, err := range unstructured.NewYAMLDecoder(strings.NewReader(text)).All() {
			require.NoError(t, err)
			resource, err := client.ForObject(t.Context(), obj)
			require.NoError(t, err)
			_, err = resource.Create(t.Context(), obj, nil)
			require.NoError(t, err)
		}
	}
	check := func(text string, more ...string) (code int, output string) {
		var stdout, stderr bytes.Buffer
		args := append([]string{"crd-check", "--kubeconfig", kubeconfig, "-f", "-"}, more...)
		code = run(t.Context(), args, strings.NewReader(text), &stdout, &stderr)
		assert.Empty(t, stderr.String())
		return code, stdout.String()
	}
	code, output := check(definition)
	assert.Zero(t, code)
	assert.Contains(t, output, "gears.example.com: 0 findings in 1 objects\n")
	code, output = check(strings.Replace(definition, ", color: {type: string}", "", 1))
	assert.Equal(t, 1, code)
	assert.Contains(t, output, "  v1: FieldLost spec.color (1 objects: default/a)\n")
	code, output = check(strings.Replace(definition, "{type: integer}", "{type: integer, minimum: 5}", 1), "-o", "json")
	assert.Equal(t, 1, code)
	assert.Contains(t, output, `"type": "Invalid"`)
}
