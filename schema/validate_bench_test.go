package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// benchmarkPod is a Pod with two containers, as a Deployment makes them.
const benchmarkPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-7c6d5b9f8-x2x4z","generateName":"web-7c6d5b9f8-","namespace":"shop",
"labels":{"app":"web","pod-template-hash":"7c6d5b9f8","app.kubernetes.io/name":"web"},"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"8080"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7c6d5b9f8","uid":"123e4567-e89b-12d3-a456-426614174000","controller":true,"blockOwnerDeletion":true}]},
"spec":{"serviceAccountName":"web","restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{"runAsNonRoot":true},
"containers":[{"name":"web","image":"example.com/web:1","imagePullPolicy":"IfNotPresent","args":["--port=8080","--log=info"],
 "ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"metrics","containerPort":9090,"protocol":"TCP"}],
 "env":[{"name":"A","value":"b"},{"name":"SECRET","valueFrom":{"secretKeyRef":{"name":"web","key":"secret"}}},{"name":"NODE","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"spec.nodeName"}}}],
 "resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"cpu":"1","memory":"512Mi"}},
 "livenessProbe":{"httpGet":{"path":"/healthz","port":"http","scheme":"HTTP"},"periodSeconds":10},"readinessProbe":{"httpGet":{"path":"/ready","port":8080},"periodSeconds":5},
 "volumeMounts":[{"name":"config","mountPath":"/etc/web","readOnly":true},{"name":"token","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true}]},
 {"name":"sidecar","image":"example.com/sidecar:1","resources":{"requests":{"cpu":"10m","memory":"16Mi"}},"volumeMounts":[{"name":"config","mountPath":"/etc/web"}]}],
"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],
"volumes":[{"name":"config","configMap":{"name":"web","defaultMode":420}},{"name":"token","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}]}}]}}`

// BenchmarkSchema_Validate_Pod validates a Pod by the schema of the sandbox's API server.
func BenchmarkSchema_Validate_Pod(b *testing.B) {
	s, err := schema.New(connect(b), nil).Kind(b.Context(), kschema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	require.NoError(b, err)
	obj, err := unstructured.Decode([]byte(benchmarkPod))
	require.NoError(b, err)
	require.Empty(b, s.Validate(b.Context(), obj, nil).Problems)
	b.ReportAllocs()
	for b.Loop() {
		s.Validate(b.Context(), obj, nil)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pods/s")
}
