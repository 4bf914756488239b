package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func decode(t *testing.T, text string) *unstructured.Object {
	t.Helper()
	obj, err := unstructured.NewYAMLDecoder(strings.NewReader(text)).Next()
	require.NoError(t, err)
	return obj
}

const (
	pod = `{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {app: web}}, spec: {containers: [
 {name: a, ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53}]}, {name: b, ports: [{containerPort: 80}]}]}}`
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}},
 template: {spec: {containers: [{name: a, ports: [{containerPort: 80}]}]}}}}`
)

func TestExposeOptions_Ports(t *testing.T) {
	for name, c := range map[string]struct {
		o    exposeOptions
		obj  string
		want string
	}{
		"of the object":    {exposeOptions{}, deployment, "[map[port:80 protocol:TCP targetPort:80]]"},
		"two protocols":    {exposeOptions{}, pod, "[map[name:port-1-udp port:53 protocol:UDP targetPort:53] map[name:port-1-tcp port:53 protocol:TCP targetPort:53] map[name:port-2 port:80 protocol:TCP targetPort:80]]"},
		"of the flag":      {exposeOptions{port: "8080", targetPort: "http"}, deployment, "[map[port:8080 protocol:TCP targetPort:http]]"},
		"several":          {exposeOptions{port: "1,2", targetPort: "9"}, deployment, "[map[name:port-1 port:1 protocol:TCP targetPort:9] map[name:port-2 port:2 protocol:TCP targetPort:9]]"},
		"with a protocol":  {exposeOptions{port: "1", protocol: "SCTP"}, pod, "[map[port:1 protocol:SCTP targetPort:1]]"},
		"not a number":     {exposeOptions{port: "x"}, pod, "error: strconv"},
		"none":             {exposeOptions{}, `{apiVersion: v1, kind: Pod}`, "error: couldn't find port via --port flag or introspection"},
		"none is headless": {exposeOptions{clusterIP: "None"}, `{apiVersion: v1, kind: Pod}`, "[]"},
	} {
		ports, err := c.o.ports(decode(t, c.obj))
		if want, fails := strings.CutPrefix(c.want, "error: "); fails {
			require.ErrorContains(t, err, want, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.want, fmt.Sprint(ports), name)
	}
}

func TestExposeOptions_Service(t *testing.T) {
	for name, c := range map[string]struct {
		o   exposeOptions
		obj string
		err string
	}{
		"kind":               {exposeOptions{}, `{apiVersion: v1, kind: ConfigMap}`, "cannot expose a ConfigMap"},
		"pod without labels": {exposeOptions{}, `{apiVersion: v1, kind: Pod}`, "the pod has no labels and cannot be exposed"},
		"no selector":        {exposeOptions{}, `{apiVersion: v1, kind: Service}`, "the service has no pod selector set"},
		"deployment":         {exposeOptions{}, `{apiVersion: apps/v1, kind: Deployment}`, "invalid deployment: no selectors, therefore cannot be exposed"},
		"expressions":        {exposeOptions{}, `{apiVersion: apps/v1, kind: ReplicaSet, spec: {selector: {matchLabels: {a: b}, matchExpressions: [{key: a}]}}}`, "couldn't convert expressions"},
		"affinity":           {exposeOptions{sessionAffinity: "Some"}, deployment, "unknown session affinity: Some"},
		"labels":             {exposeOptions{labels: "a"}, deployment, "unexpected label spec: a"},
	} {
		_, err := c.o.service(decode(t, c.obj))
		require.ErrorContains(t, err, c.err, name)
	}
	o := exposeOptions{serviceType: "LoadBalancer", loadBalancerIP: "1.2.3.4", clusterIP: "10.0.0.1", externalIP: "5.6.7.8", sessionAffinity: "ClientIP", selector: "x=y"}
	service, err := o.service(decode(t, strings.Replace(deployment, "name: web", "name: "+strings.Repeat("n", 80), 1)))
	require.NoError(t, err)
	assert.Len(t, service.GetName(), 63)
	spec := nested.Map(service.Object, "spec")
	assert.Equal(t, object{"x": "y"}, spec["selector"])
	for field, want := range map[string]any{"type": "LoadBalancer", "loadBalancerIP": "1.2.3.4", "clusterIP": "10.0.0.1", "externalIPs": []any{"5.6.7.8"}, "sessionAffinity": "ClientIP"} {
		assert.Equal(t, want, spec[field], field)
	}
}

func TestAutoscaleOptions_Metrics(t *testing.T) {
	for name, c := range map[string]struct {
		o    autoscaleOptions
		want string
	}{
		"none":           {autoscaleOptions{max: 1}, "[]"},
		"percent":        {autoscaleOptions{max: 2, cpu: "70%"}, "[map[resource:map[name:cpu target:map[averageUtilization:70 type:Utilization]] type:Resource]]"},
		"deprecated":     {autoscaleOptions{max: 2, cpuPercent: 50}, "[map[resource:map[name:cpu target:map[averageUtilization:50 type:Utilization]] type:Resource]]"},
		"numbers":        {autoscaleOptions{max: 2, cpu: "500", memory: "200"}, "[map[resource:map[name:cpu target:map[averageValue:500m type:AverageValue]] type:Resource] map[resource:map[name:memory target:map[averageValue:200Mi type:AverageValue]] type:Resource]]"},
		"quantity":       {autoscaleOptions{max: 2, memory: "1Gi"}, "[map[resource:map[name:memory target:map[averageValue:1Gi type:AverageValue]] type:Resource]]"},
		"without max":    {autoscaleOptions{}, "error: --max=MAXPODS is required and must be at least 1, max: 0"},
		"min above max":  {autoscaleOptions{max: 1, min: 2}, "error: --max=MAXPODS must be larger or equal to --min=MINPODS, max: 1, min: 2"},
		"both":           {autoscaleOptions{max: 1, cpu: "1", cpuPercent: 1}, "error: --cpu-percent and --cpu are mutually exclusive"},
		"negative":       {autoscaleOptions{max: 1, cpu: "-1%"}, "error: invalid percentage value: -1"},
		"not a quantity": {autoscaleOptions{max: 1, memory: "much"}, "error: invalid resource memory value: much"},
	} {
		metrics, err := c.o.metrics()
		if want, fails := strings.CutPrefix(c.want, "error: "); fails {
			require.EqualError(t, err, want, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.want, fmt.Sprint(metrics), name)
	}
}
