package oracle

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/client"
)

// metricsDefinition defines a kind of the metrics API. With it the API server itself serves the objects of a test, as it serves those
// of metrics-server.
const metricsDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.metrics.k8s.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: metrics.k8s.io
  names: {plural: %[1]s, singular: "", kind: %[2]s, listKind: %[2]sList}
  scope: %[3]s
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
`

// unavailableMetrics is the metrics API of a server that is not there.
const unavailableMetrics = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: oracle-none, namespace: default}
`

// podMetrics are the metrics of pods in namespace $NS.
const podMetrics = `
kind: PodMetrics
apiVersion: metrics.k8s.io/v1beta1
metadata: {name: web-0, namespace: $NS, labels: {app: web}}
timestamp: "2026-01-01T00:00:00Z"
window: 10s
containers: [{name: side, usage: {cpu: 1m, memory: 2Mi}}, {name: app, usage: {cpu: 1500u, memory: 300Mi, swap: 1Mi}}]
---
kind: PodMetrics
apiVersion: metrics.k8s.io/v1beta1
metadata: {name: web-1, namespace: $NS, labels: {app: web}}
timestamp: "2026-01-01T00:00:00Z"
window: 10s
containers: [{name: app, usage: {cpu: "2", memory: 1Gi}}]
---
kind: PodMetrics
apiVersion: metrics.k8s.io/v1beta1
metadata: {name: db, namespace: $NS}
timestamp: "2026-01-01T00:00:00Z"
window: 10s
containers: [{name: db, usage: {cpu: 123456789n, memory: "1000000"}}]
---
kind: PodMetrics
apiVersion: metrics.k8s.io/v1beta1
metadata: {name: dns, namespace: kube-system}
timestamp: "2026-01-01T00:00:00Z"
window: 10s
containers: [{name: dns, usage: {cpu: 5m, memory: 50Mi}}]
---
`

// nodeMetrics returns metrics of all nodes except for the last.
func (o *oracle) nodeMetrics(t *testing.T) string {
	t.Helper()
	var names []string
	for obj, err := range client.Resource(t, o.client, "nodes.v1.").List(t.Context(), nil) {
		require.NoError(t, err)
		names = append(names, obj.GetName())
	}
	require.NotEmpty(t, names)
	var text strings.Builder
	for i, name := range names[:len(names)-1] {
		fmt.Fprintf(&text, "kind: NodeMetrics\napiVersion: metrics.k8s.io/v1beta1\nmetadata: {name: %s}\ntimestamp: \"2026-01-01T00:00:00Z\"\nwindow: 10s\n"+
			"usage: {cpu: %dn, memory: %dKi, swap: 1Mi}\n---\n", name, (i+3)*123456789, (7-i)*123456)
	}
	return text.String()
}

// selectedPod is a pod with metrics.
const selectedPod = `
kind: Pod
apiVersion: v1
metadata: {name: web-0, namespace: $NS}
spec: {schedulerName: none, containers: [{name: app, image: app}]}
---
`

func TestTop_SameAsKubectl(t *testing.T) {
	o := newPrograms(t)
	empty := client.NewNamespace(t, o.client)
	t.Run("no metrics API", func(t *testing.T) {
		o.compare(t, &oracleCase{line: "top node", readOnly: true, fails: true})
	})
	o.fixtures = client.NewNamespace(t, o.client)
	o.apply(t, o.fixtures, fmt.Sprintf(metricsDefinition, "nodes", "NodeMetrics", "Cluster")+fmt.Sprintf(metricsDefinition, "pods", "PodMetrics", "Namespaced")+
		podMetrics+selectedPod+o.nodeMetrics(t))
	t.Run("field selector of pods", func(t *testing.T) { // kubectl 1.36 sends it to the metrics API
		got := o.anyctl.run(t, &oracleCase{line: "top pod --field-selector spec.schedulerName=none --no-headers"}, o.fixtures, nil)
		require.Zero(t, got.code, got.stderr)
		assert.Equal(t, "web-0", strings.Fields(got.stdout)[0])
		assert.Equal(t, 1, strings.Count(got.stdout, "\n"), got.stdout)
	})
	for _, c := range []oracleCase{
		{line: "top nodes"},
		{line: "top node --sort-by=cpu"},
		{line: "top no --sort-by=memory --no-headers"},
		{line: "top node --show-capacity --use-protocol-buffers=false"},
		{line: "top node --show-swap"},
		{line: "top node none", fails: true},
		{line: "top pod"},
		{line: "top pods -A"},
		{line: "top po --sort-by=cpu"},
		{line: "top pod --sort-by=memory -A --no-headers"},
		{line: "top pod --containers"},
		{line: "top pod --containers -A --sort-by=cpu"},
		{line: "top pod --sum"},
		{line: "top pod --sum -A"},
		{line: "top pod --sum --containers"},
		{line: "top pod --show-swap"},
		{line: "top pod web-0"},
		{line: "top pod web-0 --containers"},
		{line: "top pod -l app=web"},
		{line: "top pod --field-selector metadata.name=web-0"},
		{line: "top pod -n " + empty},
		{line: "top pod -n " + empty + " --sum"},
		{line: "top pod none", fails: true},
		{line: "top pod a b", fails: true},
		{line: "top pod a -l app=web", fails: true},
		{line: "top node a -l app=web", fails: true},
		{line: "top node a b", fails: true},
		{line: "top pod --sort-by=name", fails: true},
		{line: "top pod -l a=b=c", fails: true},
		{line: "top nonsense", fails: true},
	} {
		c.readOnly = true
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			o.compare(t, &c)
		})
	}
}

func TestTop_ServerUnavailable(t *testing.T) {
	o := newPrograms(t)
	o.awaitMetrics(t, false) // kinds of the group, of an earlier test, may still be served
	o.apply(t, "default", unavailableMetrics)
	o.awaitMetrics(t, true)
	for _, line := range []string{"top pod", "top node"} {
		o.compare(t, &oracleCase{line: line, readOnly: true, fails: true, differs: &difference{[]string{"stderr"}, "anyctl says why the API is not available"}})
	}
}

// awaitMetrics waits until the server lists the group of the metrics API, or no longer lists it.
func (o *oracle) awaitMetrics(t *testing.T, isListed bool) {
	t.Helper()
	send := client.Send(client.Resource(t, o.client, "nodes").Conn())
	require.Eventually(t, func() bool {
		groups, err := send(t.Context(), http.MethodGet, "/apis", "")
		return err == nil && strings.Contains(groups, `"metrics.k8s.io"`) == isListed
	}, time.Minute, 50*time.Millisecond)
}
