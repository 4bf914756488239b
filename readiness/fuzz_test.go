package readiness

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

// FuzzCompute computes the status of any object: as one of each kind that has a rule, decoded and as a Lazy.
func FuzzCompute(f *testing.F) {
	for _, seed := range []string{
		workload("Deployment", `"replicas":3`, `"observedGeneration":2,"replicas":3,"conditions":[{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]`),
		workload("StatefulSet", `"updateStrategy":{"rollingUpdate":{"partition":1}}`, `"observedGeneration":2,"replicas":1,"readyReplicas":1`),
		`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","containerStatuses":[{"name":"a\u001b]=\"","state":{"waiting":{"reason":"CrashLoopBackOff"}}},3]}}`,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":3},"status":{"conditions":[{"type":"Ready","observedGeneration":2},null]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, err := unstructured.Decode(data)
		if err != nil {
			t.Skip()
		}
		for _, kind := range [][2]string{{"", ""}, {"apps/v1", "Deployment"}, {"apps/v1", "StatefulSet"}, {"apps/v1", "DaemonSet"}, {"apps/v1", "ReplicaSet"}, {"v1", "Pod"},
			{"batch/v1", "Job"}, {"v1", "Service"}, {"v1", "PersistentVolumeClaim"}, {"policy/v1", "PodDisruptionBudget"}, {"autoscaling/v1", "HorizontalPodAutoscaler"}, {"apiextensions.k8s.io/v1", "CustomResourceDefinition"}} {
			if kind[1] != "" {
				obj.SetAPIVersion(kind[0])
				obj.SetKind(kind[1])
			}
			result := Compute(obj, nil)
			assert.NotEmpty(t, result.Status)
			assert.NotEmpty(t, result.Message)
			assert.LessOrEqual(t, len(result.Message), maxMessage)
			if result.Field != "" {
				_, err := unstructured.ParsePath(result.Field)
				require.NoError(t, err)
			}
			lazy, err := unstructured.As[unstructured.Lazy](obj)
			require.NoError(t, err)
			assert.Equal(t, result, Compute(lazy, nil))
		}
	})
}
