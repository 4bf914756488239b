package change

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

func TestRolloutStatus_Texts(t *testing.T) {
	for _, c := range []struct {
		kind, fields string
		want         string
		done         bool
	}{
		{"Deployment", `"metadata":{"name":"a","generation":2},"status":{"observedGeneration":1}`, "Waiting for deployment spec update to be observed...", false},
		{"Deployment", `"metadata":{"name":"a"},"spec":{"replicas":3},"status":{"updatedReplicas":1}`, `Waiting for deployment "a" rollout to finish: 1 out of 3 new replicas have been updated...`, false},
		{"Deployment", `"metadata":{"name":"a"},"spec":{"replicas":3},"status":{"updatedReplicas":3,"replicas":4}`, `Waiting for deployment "a" rollout to finish: 1 old replicas are pending termination...`, false},
		{"Deployment", `"metadata":{"name":"a"},"spec":{"replicas":3},"status":{"updatedReplicas":3,"replicas":3,"availableReplicas":2}`, `Waiting for deployment "a" rollout to finish: 2 of 3 updated replicas are available...`, false},
		{"Deployment", `"metadata":{"name":"a"},"spec":{"replicas":1},"status":{"updatedReplicas":1,"replicas":1,"availableReplicas":1}`, `deployment "a" successfully rolled out`, true},
		{"Deployment", `"metadata":{"name":"a"},"status":{"conditions":[{"type":"Progressing","reason":"ProgressDeadlineExceeded"}]}`, `deployment "a" exceeded its progress deadline`, false},
		{"DaemonSet", `"metadata":{"name":"a"},"spec":{"updateStrategy":{"type":"OnDelete"}}`, "rollout status is only available for RollingUpdate strategy type", true},
		{"DaemonSet", `"metadata":{"name":"a"},"spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"desiredNumberScheduled":2,"updatedNumberScheduled":1}`, `Waiting for daemon set "a" rollout to finish: 1 out of 2 new pods have been updated...`, false},
		{"StatefulSet", `"metadata":{"name":"a"},"spec":{"updateStrategy":{"type":"RollingUpdate"}}`, "Waiting for statefulset spec update to be observed...", false},
		{"StatefulSet", `"metadata":{"name":"a"},"spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}},"status":{"observedGeneration":1,"readyReplicas":3,"updatedReplicas":1}`, "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...", false},
		{"StatefulSet", `"metadata":{"name":"a"},"spec":{"replicas":1,"updateStrategy":{"type":"RollingUpdate"}},"status":{"observedGeneration":1,"readyReplicas":1,"currentRevision":"x","updateRevision":"y"}`, "waiting for statefulset rolling update to complete 0 pods at revision y...", false},
	} {
		obj, err := unstructured.Decode([]byte(`{"apiVersion":"apps/v1","kind":"` + c.kind + `",` + c.fields + `}`))
		require.NoError(t, err)
		status, err := rolloutStatusOf(obj, 0)
		require.NoError(t, err)
		text, done, err := status(obj)
		if err != nil {
			text = err.Error()
		}
		assert.Equal(t, c.want, text)
		assert.Equal(t, c.done, done, c.want)
	}
}
