package applyset_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/readiness"
)

// TestSet_StatusReportsDrift changes members as a different manager.
func TestSet_StatusReportsDrift(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("drift")
	objects := e.objects(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: changed}
data: {a: ours, b: ours, c: ours}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: deleted}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {password: ours}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unchanged}
`)
	_, err := set.Apply(t.Context(), append(objects, e.configMaps(t, "x", "left")...), nil)
	require.NoError(t, err)
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	secrets := client.Resource(t, e.Client, "secrets").Namespace(e.namespace)
	theirs := &metav1.PatchOptions{FieldManager: "theirs"}
	_, err = configMaps.Patch(t.Context(), "changed", types.MergePatchType, []byte(`{"data":{"a":"theirs","b":null}}`), theirs)
	require.NoError(t, err)
	_, err = configMaps.Delete(t.Context(), "deleted", nil)
	require.NoError(t, err)
	_, err = secrets.Patch(t.Context(), "secret", types.MergePatchType, []byte(`{"stringData":{"password":"theirs"}}`), theirs)
	require.NoError(t, err)

	status, err := set.Status(t.Context(), objects)
	require.NoError(t, err)
	byName := map[string]applyset.ObjectStatus{}
	for _, object := range status {
		byName[object.Object.Name] = object
	}
	require.Len(t, byName, 5)
	require.Len(t, byName["changed"].Drift, 2)
	assert.WithinDuration(t, time.Now(), byName["changed"].Drift[0].Time, time.Minute)
	byName["changed"].Drift[0].Time = time.Time{}
	assert.Equal(t, []applyset.FieldDrift{
		{Field: ".data.a", Difference: applyset.Changed, Manager: "theirs", Want: `"ours"`, Have: `"theirs"`},
		{Field: ".data.b", Difference: applyset.Missing, Want: `"ours"`},
	}, byName["changed"].Drift)
	assert.Nil(t, byName["deleted"].Live)
	assert.Equal(t, readiness.Result{Status: readiness.InProgress, Message: "it does not exist"}, byName["deleted"].Readiness)
	require.Len(t, byName["secret"].Drift, 1)
	byName["secret"].Drift[0].Time = time.Time{}
	assert.Equal(t, applyset.FieldDrift{Field: ".data.password", Difference: applyset.Changed, Manager: "theirs"}, byName["secret"].Drift[0])
	assert.Empty(t, byName["unchanged"].Drift)
	assert.Equal(t, readiness.Current, byName["unchanged"].Readiness.Status)
	assert.True(t, byName["left"].Prunable)

	events, err := set.Apply(t.Context(), objects, &applyset.ApplyOptions{Conflicts: applyset.ConflictForce})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{
		"configured ConfigMap changed", "created ConfigMap deleted", "configured Secret secret", "unchanged ConfigMap unchanged", "pruned ConfigMap left",
	}, outcomes(events))
}

// TestSet_WaitNamesUnreadyObjects waits for a pod on a node that does not exist, and for a Service of the pod without an address.
func TestSet_WaitNamesUnreadyObjects(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("wait")
	objects := e.objects(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: ready}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {automountServiceAccountToken: false, nodeName: none, containers: [{name: web, image: nginx}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
`)
	progress := map[string]readiness.Status{}
	onProgress := func(ref applyset.Reference, result readiness.Result) { progress[ref.String()] = result.Status }
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, assert.AnError)
	defer cancel()
	e.awaitServiceAccount(t)
	_, err := set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	pod, err := client.Resource(t, e.Client, "pods").Namespace(e.namespace).Get(t.Context(), "web", nil)
	require.NoError(t, err)
	_, err = client.Resource(t, e.Client, "events").Namespace(e.namespace).Create(t.Context(), e.objects(t, `
apiVersion: v1
kind: Event
metadata: {name: web.1}
type: Warning
reason: BackOff
message: Back-off pulling image "nginx"
involvedObject: {apiVersion: v1, kind: Pod, name: web, namespace: NAMESPACE, uid: `+string(pod.GetUID())+`}
`)[0].Object, nil)
	require.NoError(t, err)
	err = set.Wait(ctx, objects, &applyset.WaitOptions{OnProgress: onProgress})
	var notReady *applyset.NotReadyError
	require.ErrorAs(t, err, &notReady)
	require.ErrorIs(t, err, assert.AnError)
	var names []string
	for _, object := range notReady.Objects {
		names = append(names, object.Object.String())
		assert.Equal(t, []string{`BackOff: Back-off pulling image "nginx"`}, object.Warnings, "%s", object.Object)
	}
	assert.Equal(t, []string{`Pod "` + e.namespace + `/web"`, `Service "` + e.namespace + `/web"`}, names)
	assert.Equal(t, readiness.Current, progress[`ConfigMap "`+e.namespace+`/ready"`])

	require.NoError(t, set.Wait(t.Context(), objects[:1], nil))
}

// awaitServiceAccount waits until the API server admits pods, if the controllers run.
func (e *environment) awaitServiceAccount(t *testing.T) {
	t.Helper()
	accounts := client.Resource(t, e.Client, "serviceaccounts").Namespace(e.namespace)
	_, _ = accounts.Create(t.Context(), e.objects(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default}\n")[0].Object, nil)
}
