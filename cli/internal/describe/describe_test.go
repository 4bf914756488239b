package describe

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func described(t *testing.T, object string, related *Related) string {
	t.Helper()
	obj, err := unstructured.Decode([]byte(object))
	require.NoError(t, err)
	related.Now = now()
	var b strings.Builder
	require.NoError(t, Write(&b, obj, related))
	return b.String()
}

func TestWrite_AnyKind(t *testing.T) {
	got := described(t, `{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {
		"name": "small", "namespace": "shop", "labels": {"app": "web"}, "finalizers": ["hold"],
		"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"secret\":1}", "note": "two\nlines"},
		"ownerReferences": [{"apiVersion": "v1", "kind": "Shop", "name": "main", "uid": "1", "controller": true}, {"kind": "Other", "name": "x"}],
		"creationTimestamp": "2026-01-02T03:03:05Z", "managedFields": [{"manager": "m"}]},
		"spec": {"size": 3, "empty": {}, "none": [], "tags": ["a", "b"], "parts": [{"name": "p", "depth": {"x": 1.5}}, {"a": true}], "text": "bad \u001b[31m\u202e"},
		"extra": "top",
		"status": {"ready": null, "conditions": [{"type": "Ready", "status": "False", "reason": "Why", "message": "not\nyet", "lastTransitionTime": "2026-01-02T03:04:00Z"}]}
	}`, &Related{ShowEvents: true})
	for _, want := range []string{
		"Name:           small\nNamespace:      shop\nLabels:         app=web\nAnnotations:    note: two\n                lines\n",
		"Controlled By:  Shop/main\nOwned By:       Other/x\nHealth:         InProgress: ",
		"Spec:\n  empty:  {}\n  none:   []\n  parts:\n    - name:  p\n      depth:\n        x:  1.5\n    - a:  true\n  size:   3\n  tags:   a, b\n" +
			"  text:   bad \\x1b[31m\\u202e\nExtra:          top\nStatus:\n  ready:  <null>\n",
		"Conditions:\n  Type   Status  Age  Reason  Message\n  ----   ------  ---  ------  -------\n  Ready  False   5s   Why     not yet\n",
		"Events:         <none>\n", "Finalizers:     hold\n",
	} {
		assert.Contains(t, got, want)
	}
	assert.NotContains(t, got, "secret")
	assert.NotContains(t, got, "manager")
	assert.NotContains(t, got, "\x1b")
}

func TestWrite_SecretShowsSizes(t *testing.T) {
	got := described(t, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {
		"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"password\":\"aGVsbG8=\"}}"}},
		"data": {"password": "aGVsbG8="}, "stringData": {"token": "abc"}, "type": "Opaque"}`, &Related{})
	assert.Contains(t, got, "Data:\n  password:  5 bytes\n")
	assert.Contains(t, got, "  token:  3 bytes\n")
	for _, secret := range []string{"aGVsbG8=", "hello", "abc"} {
		assert.NotContains(t, got, secret)
	}
}

func TestWrite_Pod(t *testing.T) {
	got := described(t, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop"},
		"spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "web:1", "command": ["run"], "args": ["-v"],
			"ports": [{"containerPort": 80, "name": "http"}], "resources": {"limits": {"cpu": "1"}},
			"env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
			"readinessProbe": {"httpGet": {"path": "/ready", "port": 80, "scheme": "HTTP"}, "periodSeconds": 10},
			"volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": true}]}],
			"volumes": [{"name": "data", "configMap": {"name": "c"}}], "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}]},
		"status": {"phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "qosClass": "Burstable", "containerStatuses": [{"name": "web", "ready": true, "restartCount": 2,
			"state": {"running": {"startedAt": "2026-01-02T03:00:00Z"}}, "lastState": {"terminated": {"reason": "Error", "exitCode": 3}}}]}}`, &Related{})
	for _, want := range []string{
		"Node:             node-1/10.0.0.1\n", "Status:           Running\n", "  web:\n    Container ID:\n    Image:          web:1\n",
		"    Port:           80/TCP (http)\n", "    Command:        run\n    Args:           -v\n    State:          Running\n      Started:",
		"    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    3\n    Ready:          True\n    Restart Count:  2\n    Limits:\n      cpu:  1\n",
		"http-get http://:80/ready delay=0s timeout=0s period=10s successThreshold=0 failureThreshold=0\n",
		"      A:  1\n      B:  <set to the key 'k' in secret 's'>  Optional: false\n", "      /data from data (ro)\n",
		"  data:\n    Type:  ConfigMap\n    name:  c\n", "QoS Class:        Burstable\n", "Tolerations:      k op=Exists for 5s\n",
	} {
		assert.Contains(t, got, want)
	}
}

func TestWrite_FieldsLeftByLayout(t *testing.T) {
	got := described(t, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "generation": 2}, "spec": {
		"readinessGates": [{"conditionType": "warm"}], "newField": {"a": 1, "none": {}},
		"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i", "stdin": true, "env": [{"name": "L", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]}]},
		"status": {"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null, "observedGeneration": 2}, {"type": "Warm", "status": "True", "observedGeneration": 1}]}}`, &Related{})
	assert.Contains(t, got, "Spec:\n  containers:\n    - name:   b\n      stdin:  true\n  newField:\n    a:     1\n    none:  {}\n  readinessGates:\n    - conditionType:  warm\n"+
		"Status:\n  conditions:\n    - observedGeneration:  1\n      type:                Warm\n")
	assert.Contains(t, got, "L:  node allocatable (limits.cpu)\n")
}

func TestWrite_LongValuesBySize(t *testing.T) {
	got := described(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "binaryData": {"blob": "aGVsbG8="}, "data": {"a": "`+
		strings.Repeat("x", maxText)+`", "b": "`+strings.Repeat("y", maxText+1)+`"}}`, &Related{})
	assert.Contains(t, got, "BinaryData:\n  blob:  5 bytes\n")
	assert.Contains(t, got, "  a:  xxx")
	assert.Contains(t, got, "  b:  <10001 bytes>\n")
}

func TestWrite_RelatedObjects(t *testing.T) {
	object := func(text string) *unstructured.Object {
		obj, err := unstructured.Decode([]byte(text))
		require.NoError(t, err)
		return obj
	}
	got := described(t, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}`, &Related{
		Quotas:      []*unstructured.Object{object(`{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "status": {"hard": {"pods": "5"}, "used": {"pods": "2"}}}`)},
		LimitRanges: []*unstructured.Object{object(`{"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}}`)},
	})
	assert.Regexp(t, `pods +2 +5\n`, got)
	assert.Regexp(t, `l +Pod +cpu +- +1 +- +- +-\n`, got)
	got = described(t, `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}}`, &Related{
		Pods: []*unstructured.Object{object(`{"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}}`), object(`{"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Pending"}}`)},
	})
	assert.Contains(t, got, "1 Running / 1 Waiting / 0 Succeeded / 0 Failed")
	got = described(t, `{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {"defaultBackend": {"service": {"name": "gone", "port": {"number": 1}}}}}`, &Related{})
	assert.Contains(t, got, "gone:1 (<service not found>)")
}

func TestWrite_NodeSumsResources(t *testing.T) {
	pod := func(name, phase, spec string) *unstructured.Object {
		obj, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "` + name + `", "namespace": "shop"},
			"spec": ` + spec + `, "status": {"phase": "` + phase + `"}}`))
		require.NoError(t, err)
		return obj
	}
	const half = `{"containers": [{"resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}}],
		"initContainers": [{"resources": {"requests": {"cpu": "700m"}}}, {"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}]}`
	got := described(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": ""}},
		"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}, "status": {"allocatable": {"cpu": "2", "memory": "4Gi"}}}`,
		&Related{Pods: []*unstructured.Object{pod("a", "Running", half), pod("done", "Succeeded", half)}})
	assert.Contains(t, got, "Roles:              worker\n")
	assert.Contains(t, got, "Taints:             a=b:NoSchedule\n")
	assert.Contains(t, got, "Non-terminated Pods (1 in total):\n")
	assert.Regexp(t, `shop +a +700m \(35%\) +0 \(0%\) +0 \(0%\) +1Gi \(25%\)`, got)
	assert.Regexp(t, `cpu +700m \(35%\) +0 \(0%\)`, got)
	assert.NotContains(t, got, "done")
}

// The values are those of kubectl's PodRequests and PodLimits.
func TestPodResources_LikeKubectl(t *testing.T) {
	const app = `"containers": [{"resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "1Gi"}}}]`
	const sidecar = `{"restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}, "limits": {"cpu": "400m"}}}`
	const setup = `{"resources": {"requests": {"cpu": "600m"}, "limits": {"cpu": "2"}}}`
	for name, c := range map[string]struct{ spec, requests, limits string }{
		"containers":             {app, "500m", "1"},
		"with a sidecar":         {app + `, "initContainers": [` + sidecar + `]`, "700m", "1400m"},
		"sidecar after an init":  {app + `, "initContainers": [` + setup + `,` + sidecar + `]`, "700m", "2"},
		"sidecar before an init": {app + `, "initContainers": [` + sidecar + `,` + setup + `]`, "800m", "2400m"},
		"of the pod":             {app + `, "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4", "example.com/gpu": "1"}}`, "3", "4"},
		"limits of the pod":      {app + `, "resources": {"limits": {"cpu": "4"}}`, "500m", "4"},
		"with overhead":          {app + `, "overhead": {"cpu": "100m", "ephemeral-storage": "1Gi"}`, "600m", "1100m"},
	} {
		t.Run(name, func(t *testing.T) {
			obj, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {` + c.spec + `}}`))
			require.NoError(t, err)
			used := podResources(obj.Object)
			assert.Equal(t, c.requests, used["cpu"].requests.String())
			assert.Equal(t, c.limits, used["cpu"].limits.String())
			assert.NotContains(t, used, "example.com/gpu")
			if storage := used["ephemeral-storage"]; storage != nil {
				assert.True(t, storage.limits.IsZero())
			}
		})
	}
}

func TestWrite_Events(t *testing.T) {
	event := func(fields string) *unstructured.Object {
		obj, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "Event", "metadata": {}, ` + fields + `}`))
		require.NoError(t, err)
		return obj
	}
	events := []*unstructured.Object{
		event(`"type": "Warning", "reason": "Late", "message": "b", "count": 3, "firstTimestamp": "2026-01-02T03:00:05Z", "lastTimestamp": "2026-01-02T03:04:00Z", "source": {"component": "kubelet"}`),
		event(`"type": "Normal", "reason": "Early", "message": "a\nb", "eventTime": "2026-01-02T03:03:05.000000Z", "reportingComponent": "scheduler"`),
	}
	const configMap = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`
	got := described(t, configMap, &Related{ShowEvents: true, Events: events})
	assert.Contains(t, got, "  Normal   Early   60s              scheduler  a b\n  Warning  Late    5s (x3 over 4m)  kubelet    b\n")
	assert.Contains(t, described(t, configMap, &Related{ShowEvents: true, MissingEvents: errors.New("forbidden")}), "Events:       <unknown: forbidden>\n")
	assert.NotContains(t, described(t, configMap, &Related{}), "Events")
}

func FuzzWrite(f *testing.F) {
	f.Add(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [1, {"ports": {}}], "volumes": [{"name": 1}]}, "status": 3}`)
	f.Add(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"conditions": [{}], "allocatable": {"cpu": []}}}`)
	f.Add(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": 1}}}`)
	f.Add(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{}, []]}}`)
	f.Fuzz(func(t *testing.T, object string) {
		obj, err := unstructured.Decode([]byte(object))
		if err != nil {
			return
		}
		var b strings.Builder
		require.NoError(t, Write(&b, obj, &Related{Now: now(), ShowEvents: true, Events: []*unstructured.Object{obj}}))
		for _, r := range b.String() {
			require.True(t, r == '\n' || r >= ' ', "%q", b.String())
		}
	})
}
