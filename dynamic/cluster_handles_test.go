package dynamic_test

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// kubectl returns the output of a command.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), cluster.Kubectl(t), append([]string{"--kubeconfig", cluster.Kubeconfig(t)}, args...)...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s: %s", command, output)
	return strings.TrimSpace(string(output))
}

func TestForGVR_OnCluster(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := client.ForGVR(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	_, err := configMaps.Create(t.Context(), in(namespace, configMap("one", nil)), nil)
	require.NoError(t, err)
	found := false
	for obj, err := range configMaps.List(t.Context(), nil) { // of all namespaces
		require.NoError(t, err)
		found = found || obj.GetNamespace() == namespace && obj.GetName() == "one"
	}
	assert.True(t, found)
	here := configMaps.Namespace(namespace)
	_, result, err := here.Upsert(t.Context(), "two", func(*unstructured.Object) error { return nil }, nil)
	require.NoError(t, err)
	assert.Equal(t, dynamic.UpsertCreated, result)
	assert.Equal(t, "configmap/two", kubectl(t, "get", "configmap", "two", "-n", namespace, "-o", "name"))
	obj, err := here.Metadata().Get(t.Context(), "one", nil)
	require.NoError(t, err)
	assert.Equal(t, "PartialObjectMetadata", obj.GetKind())
	_, err = here.Wait(t.Context(), "one", dynamic.Exists())
	require.NoError(t, err)
	_, err = here.Subresource("scale").Get(t.Context(), "one", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status, "the server rejects it")
	deleted, err := here.DeleteCollection(t.Context(), nil, &metav1.ListOptions{FieldSelector: "metadata.name=one"})
	require.NoError(t, err)
	require.Len(t, deleted.Items, 1)

	nodes := client.ForGVR(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	_, err = nodes.ListPage(t.Context(), nil)
	require.NoError(t, err)
	_, err = nodes.Namespace(namespace).ListPage(t.Context(), nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestNamed_WatchesOneObject(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "configmaps").Namespace(namespace)
	path, err := configMaps.Path("mine")
	require.NoError(t, err)
	all, name, err := client.ForPath(t.Context(), path)
	require.NoError(t, err)
	mine := all.Named(name)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	stream, err := mine.OpenWatch(ctx, nil)
	require.NoError(t, err)
	defer stream.Close()
	for _, other := range []string{"other", "mine"} {
		_, err = configMaps.Create(ctx, configMap(other, nil), nil)
		require.NoError(t, err)
	}
	event, err := stream.Next()
	require.NoError(t, err)
	assert.Equal(t, watch.Added, event.Type)
	assert.Equal(t, "mine", event.Object.GetName())

	var changes []string
	for change, err := range mine.Follow(ctx, nil) {
		require.NoError(t, err)
		text := string(change.Type)
		if change.Object != nil {
			text += " " + change.Object.GetName()
		}
		changes = append(changes, text)
		if change.Type == watch.Deleted {
			break
		}
		if change.Type == dynamic.Synced {
			for _, each := range []string{"other", "mine"} {
				_, err := configMaps.Delete(ctx, each, nil)
				require.NoError(t, err)
			}
		}
	}
	assert.Equal(t, []string{"STARTED", "ADDED mine", "SYNCED", "DELETED mine"}, changes)
	_, err = mine.Wait(ctx, name, dynamic.Deleted())
	require.NoError(t, err)
}

func TestNamed_WritesSubresources(t *testing.T) {
	client, namespace := newNamespace(t)
	deployments := resource(t, client, "deploy").Namespace(namespace)
	_, err := deployments.Create(t.Context(), deployment("web"), nil)
	require.NoError(t, err)
	scale := deployments.Named("web").Subresource("scale")
	replicas := func() string {
		return kubectl(t, "get", "deployment", "web", "-n", namespace, "-o", "jsonpath={.spec.replicas}")
	}
	_, err = scale.Apply(t.Context(), scaleTo(3), &metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(t, err)
	assert.Equal(t, "3", replicas())
	four := scaleTo(4)
	four.SetName("web")
	_, err = scale.Update(t.Context(), four, nil)
	require.NoError(t, err)
	assert.Equal(t, "4", replicas())
	four.SetName("other")
	_, err = scale.Update(t.Context(), four, nil)
	require.True(t, apierrors.IsBadRequest(err), "the server compares the names: %v", err)

	accounts := resource(t, client, "sa").Namespace(namespace)
	_, err = accounts.Create(t.Context(), named("robot", nil), nil)
	require.NoError(t, err)
	token, err := accounts.Named("robot").Subresource("token").Create(t.Context(), kindless(map[string]any{"spec": map[string]any{}}), nil)
	require.NoError(t, err)
	assert.NotEmpty(t, field(t, token, "status", "token"))

	pods := resource(t, client, "pods").Namespace(namespace)
	pod := named("web", map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}, "serviceAccountName": "robot", "automountServiceAccountToken": false, "schedulerName": "none"})
	_, err = pods.Create(t.Context(), pod, nil)
	require.NoError(t, err)
	binding := kindless(map[string]any{"metadata": map[string]any{"name": "web"}, "target": map[string]any{"kind": "Node", "name": "nowhere"}})
	_, err = pods.Named("web").Subresource("binding").Create(t.Context(), binding, nil)
	require.NoError(t, err)
	assert.Equal(t, "nowhere", kubectl(t, "get", "pod", "web", "-n", namespace, "-o", "jsonpath={.spec.nodeName}"))
	_, err = pods.Delete(t.Context(), "web", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	require.NoError(t, err)
}

func TestOpenWatch_OnCluster(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "configmaps").Namespace(namespace)
	_, err := resource(t, connect(t, "limited"), "secrets").OpenWatch(t.Context(), nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	created, err := configMaps.Create(t.Context(), configMap("one", nil), nil)
	require.NoError(t, err)
	stream, err := configMaps.OpenWatch(t.Context(), &metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	require.NoError(t, err)
	_, err = configMaps.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), nil)
	require.NoError(t, err)
	event, err := stream.Next()
	require.NoError(t, err)
	assert.Equal(t, watch.Modified, event.Type)
	stream.Close()

	// The server accepts a watch that has expired, and sends an ERROR event.
	cluster.Compact(t)
	cluster.RestartAPIServer(t, true)
	stream, err = configMaps.OpenWatch(t.Context(), &metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	require.NoError(t, err)
	defer stream.Close()
	_, err = stream.Next()
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, metav1.StatusReasonExpired, status.ErrStatus.Reason)
	assert.Equal(t, int32(http.StatusGone), status.ErrStatus.Code)
}

func TestDefaults_OnCluster(t *testing.T) {
	client, namespace := newNamespace(t)
	dry := client.WithDefaults(&dynamic.Defaults{Namespace: namespace, FieldManager: "tester", DryRun: true})
	configMaps := resource(t, dry, "configmaps")
	made, err := configMaps.Create(t.Context(), configMap("one", nil), nil)
	require.NoError(t, err)
	assert.Equal(t, namespace, made.GetNamespace())
	assert.Empty(t, kubectl(t, "get", "configmap", "one", "-n", namespace, "--ignore-not-found"))
	_, err = configMaps.Apply(t.Context(), configMap("one", nil), nil)
	require.NoError(t, err)
	assert.Empty(t, kubectl(t, "get", "configmap", "one", "-n", namespace, "--ignore-not-found"))

	strict := resource(t, client.WithDefaults(&dynamic.Defaults{Namespace: namespace, FieldManager: "tester", FieldValidation: metav1.FieldValidationStrict}), "configmaps")
	_, err = strict.Apply(t.Context(), configMap("one", map[string]any{"a": "1"}), nil)
	require.NoError(t, err)
	assert.Equal(t, "tester", kubectl(t, "get", "configmap", "one", "-n", namespace, "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields[*].manager}"))
	_, err = configMaps.Delete(t.Context(), "one", nil)
	require.NoError(t, err)
	_, err = configMaps.DeleteCollection(t.Context(), nil, nil)
	require.NoError(t, err)
	assert.Equal(t, "configmap/one", kubectl(t, "get", "configmap", "one", "-n", namespace, "-o", "name"))

	wrong := configMap("two", nil)
	wrong.Object["dta"] = map[string]any{}
	_, err = strict.Create(t.Context(), wrong, nil)
	var invalid *dynamic.FieldValidationError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, []string{"dta"}, invalid.Unknown)
	var warnings []string
	_, err = strict.WithDefaults(&dynamic.Defaults{FieldValidation: metav1.FieldValidationWarn, OnWarning: func(_ context.Context, text string) { warnings = append(warnings, text) }}).
		Create(t.Context(), wrong, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{`unknown field "dta"`}, warnings)

	_, err = resource(t, client, "sa").Create(t.Context(), in(namespace, named("robot", nil)), nil)
	require.NoError(t, err)
	_, err = resource(t, client, "pods").Create(t.Context(), in(namespace, named("web", map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "none"}}, "serviceAccountName": "robot", "automountServiceAccountToken": false})), nil)
	require.NoError(t, err)
	pods := resource(t, dry, "pods")
	require.NoError(t, pods.Evict(t.Context(), "web", nil))
	assert.Equal(t, "pod/web", kubectl(t, "get", "pod", "web", "-n", namespace, "-o", "name"))
	_, err = resource(t, client, "pods").Namespace(namespace).Delete(t.Context(), "web", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	require.NoError(t, err)
}

func TestImpersonate_OnCluster(t *testing.T) {
	client, namespace := newNamespace(t)
	whoami := func(c *dynamic.Client) any {
		reviews := c.ForGVR(schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"})
		review, err := reviews.Create(t.Context(), &unstructured.Object{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}, nil)
		require.NoError(t, err)
		return field(t, review, "status", "userInfo", "username")
	}
	jane, err := client.Impersonate(transport.Impersonation{User: "jane", Groups: []string{"developers"}})
	require.NoError(t, err)
	assert.Equal(t, "jane", whoami(jane))
	assert.Contains(t, kubectl(t, "auth", "whoami", "--as", "jane", "--as-group", "developers"), "jane")
	assert.Equal(t, "admin", whoami(client))

	secrets := resource(t, client, "secrets").Namespace(namespace)
	_, err = secrets.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "s"}}}, nil)
	require.NoError(t, err)
	janes := resource(t, jane, "secrets").Namespace(namespace)
	_, err = secrets.Get(t.Context(), "s", nil)
	require.NoError(t, err)
	_, err = janes.Get(t.Context(), "s", nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = janes.OpenWatch(t.Context(), nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	kubectl(t, "create", "role", "reader", "-n", namespace, "--verb=get,list,watch", "--resource=secrets", "--resource-name=s")
	kubectl(t, "create", "rolebinding", "reader", "-n", namespace, "--role=reader", "--group=developers")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.Eventually(t, func() bool { _, err := janes.Get(ctx, "s", nil); return err == nil }, patience, 50*time.Millisecond)
	_, err = janes.ListPage(ctx, nil)
	require.True(t, apierrors.IsForbidden(err), "the right is for one name: %v", err)
	page, err := janes.Named("s").ListPage(ctx, nil)
	require.NoError(t, err)
	assert.Len(t, page.Items, 1)
	stream, err := janes.Named("s").OpenWatch(ctx, nil)
	require.NoError(t, err)
	stream.Close()

	limited := connect(t, "limited")
	other, err := limited.Impersonate(transport.Impersonation{User: "admin"})
	require.NoError(t, err)
	_, err = resource(t, other, "secrets").ListPage(ctx, nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "impersonate")
}
