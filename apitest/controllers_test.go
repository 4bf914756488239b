package apitest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// simulated is a client of a server with controllers, inside a synctest bubble.
type simulated struct {
	*testing.T
	client *dynamic.Client
}

// simulate runs a test against a server with controllers.
func simulate(t *testing.T, set apitest.Controllers, test func(*simulated)) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(t, &apitest.Options{InMemory: true, Controllers: set})
		test(&simulated{t, server.Client()})
	})
}

func (s *simulated) resource(name string) *dynamic.Resource {
	r, err := s.client.Resource(s.Context(), name)
	require.NoError(s, err)
	if r.APIResource().Namespaced {
		return r.Namespace("default")
	}
	return r
}

// create creates an object and waits until the controllers have nothing more to do.
func (s *simulated) create(resource, text string) *unstructured.Object {
	created, err := s.resource(resource).Create(s.Context(), object(s, text), nil)
	require.NoError(s, err)
	synctest.Wait()
	return created
}

func (s *simulated) get(resource, name string) *unstructured.Object {
	obj, err := s.resource(resource).Get(s.Context(), name, nil)
	require.NoError(s, err)
	return obj
}

func (s *simulated) patch(resource, name, patch string) {
	_, err := s.resource(resource).Patch(s.Context(), name, types.MergePatchType, []byte(patch), nil)
	require.NoError(s, err)
	synctest.Wait()
}

func (s *simulated) names(resource string) (names []string) {
	for obj, err := range s.resource(resource).List(s.Context(), nil) {
		require.NoError(s, err)
		names = append(names, obj.GetName())
	}
	return names
}

func (s *simulated) delete(resource, name string, policy metav1.DeletionPropagation) {
	_, err := s.resource(resource).Delete(s.Context(), name, &metav1.DeleteOptions{PropagationPolicy: &policy})
	require.NoError(s, err)
	synctest.Wait()
}

func (s *simulated) requireReady(obj *unstructured.Object) {
	result := readiness.Compute(obj, nil)
	require.Equal(s, readiness.Current, result.Status, "%s: %s", obj.GetName(), result.Message)
}

const podTemplate = `template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web:1}]}}`

func deploymentOf(replicas int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default},
  spec: {replicas: %d, selector: {matchLabels: {app: web}}, %s}}`, replicas, podTemplate)
}

func TestControllers_DeploymentRollsOut(t *testing.T) {
	simulate(t, apitest.AllControllers, func(s *simulated) {
		s.create("deployments", deploymentOf(3))
		s.requireReady(s.get("deployments", "web"))
		require.Len(s, s.names("pods"), 3)
		require.Len(s, s.names("replicasets"), 1)
		assert.EqualValues(s, 1, s.get("deployments", "web").GetGeneration())
		first := s.names("pods")

		s.patch("deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
		deployment := s.get("deployments", "web")
		s.requireReady(deployment)
		assert.Equal(s, "2", deployment.GetAnnotations()["deployment.kubernetes.io/revision"])
		assert.EqualValues(s, 2, deployment.GetGeneration())
		assert.Len(s, s.names("replicasets"), 2)
		second := s.names("pods")
		require.Len(s, second, 3)
		assert.NotSubset(s, first, second)

		s.patch("deployments", "web", `{"spec":{"replicas":1}}`)
		assert.Len(s, s.names("pods"), 1)
		s.patch("deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`)
		deployment = s.get("deployments", "web")
		s.requireReady(deployment)
		assert.Equal(s, "3", deployment.GetAnnotations()["deployment.kubernetes.io/revision"])
		assert.Len(s, s.names("replicasets"), 2)

		s.delete("deployments", "web", metav1.DeletePropagationForeground)
		assert.Empty(s, s.names("deployments"))
		assert.Empty(s, s.names("replicasets"))
		assert.Empty(s, s.names("pods"))
	})
}

func TestControllers_RollingUpdateWithinLimits(t *testing.T) {
	simulate(t, apitest.Workloads, func(s *simulated) {
		s.create("deployments", deploymentOf(4))
		require.Len(s, s.names("pods"), 4)
		for _, name := range s.names("pods") {
			s.makeReady(name)
		}
		synctest.Wait()
		s.patch("deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
		// 25% of 4 may be missing and 25% more may exist, and no new pod becomes ready.
		pods := s.names("pods")
		assert.Len(s, pods, 5)
		ready := 0
		for _, name := range pods {
			if phase, _, _ := unstructured.Get[string](s.get("pods", name), "status", "phase"); phase == "Running" {
				ready++
			}
		}
		assert.Equal(s, 3, ready)
		result := readiness.Compute(s.get("deployments", "web"), nil)
		assert.Equal(s, readiness.InProgress, result.Status)
	})
}

func (s *simulated) makeReady(name string) {
	now := time.Now().UTC().Format(time.RFC3339)
	pod := s.get("pods", name)
	pod.Object["status"] = map[string]any{"phase": "Running", "conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "lastProbeTime": nil, "lastTransitionTime": now},
	}}
	_, err := s.resource("pods").Subresource("status").Update(s.Context(), pod, nil)
	require.NoError(s, err)
}

func TestControllers_StatefulSetInOrder(t *testing.T) {
	simulate(t, apitest.AllControllers, func(s *simulated) {
		s.create("statefulsets", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: default}, spec: {
  replicas: 3, serviceName: web, selector: {matchLabels: {app: web}}, `+podTemplate+`,
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`)
		s.requireReady(s.get("statefulsets", "web"))
		assert.Equal(s, []string{"web-0", "web-1", "web-2"}, s.names("pods"))
		assert.Equal(s, []string{"data-web-0", "data-web-1", "data-web-2"}, s.names("persistentvolumeclaims"))
		before := s.get("pods", "web-0").GetUID()
		s.patch("statefulsets", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
		s.requireReady(s.get("statefulsets", "web"))
		assert.NotEqual(s, before, s.get("pods", "web-0").GetUID())
		s.patch("statefulsets", "web", `{"spec":{"replicas":1}}`)
		assert.Equal(s, []string{"web-0"}, s.names("pods"))
	})
}

func TestControllers_DaemonSetOnEachNode(t *testing.T) {
	simulate(t, apitest.AllControllers, func(s *simulated) {
		s.create("nodes", `{apiVersion: v1, kind: Node, metadata: {name: one}}`)
		s.create("daemonsets", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, namespace: default},
  spec: {selector: {matchLabels: {app: web}}, `+podTemplate+`}}`)
		s.requireReady(s.get("daemonsets", "web"))
		assert.Len(s, s.names("pods"), 1)
		s.create("nodes", `{apiVersion: v1, kind: Node, metadata: {name: two}}`)
		s.requireReady(s.get("daemonsets", "web"))
		assert.Len(s, s.names("pods"), 2)
	})
}

func TestControllers_JobCompletes(t *testing.T) {
	simulate(t, apitest.AllControllers, func(s *simulated) {
		s.create("jobs", `{apiVersion: batch/v1, kind: Job, metadata: {name: work, namespace: default}, spec: {completions: 3, parallelism: 2,
  template: {spec: {restartPolicy: Never, containers: [{name: work, image: work}]}}}}`)
		job := s.get("jobs", "work")
		s.requireReady(job)
		succeeded, _, err := unstructured.Get[int64](job, "status", "succeeded")
		require.NoError(s, err)
		assert.Equal(s, int64(3), succeeded)
		assert.Len(s, s.names("pods"), 3)
	})
}

func TestControllers_PropagationPolicies(t *testing.T) {
	for _, c := range []struct {
		policy metav1.DeletionPropagation
		left   bool
	}{{metav1.DeletePropagationBackground, false}, {metav1.DeletePropagationForeground, false}, {metav1.DeletePropagationOrphan, true}} {
		t.Run(string(c.policy), func(t *testing.T) {
			simulate(t, apitest.GarbageCollection, func(s *simulated) {
				owner := s.create("configmaps", configMap)
				s.create("secrets", fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: dependent, namespace: default,
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: settings, uid: %s, blockOwnerDeletion: true}]}}`, owner.GetUID()))
				require.Equal(s, []string{"dependent"}, s.names("secrets"))
				s.delete("configmaps", "settings", c.policy)
				assert.Empty(s, s.names("configmaps"))
				if !c.left {
					assert.Empty(s, s.names("secrets"))
					return
				}
				assert.Empty(s, s.get("secrets", "dependent").GetOwnerReferences())
			})
		})
	}
}

func TestControllers_ForegroundWaitsForFinalizers(t *testing.T) {
	simulate(t, apitest.GarbageCollection, func(s *simulated) {
		owner := s.create("configmaps", configMap)
		s.create("secrets", fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: dependent, namespace: default, finalizers: [example.com/wait],
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: settings, uid: %s, blockOwnerDeletion: true}]}}`, owner.GetUID()))
		s.delete("configmaps", "settings", metav1.DeletePropagationForeground)
		assert.NotNil(s, s.get("secrets", "dependent").GetDeletionTimestamp())
		assert.NotNil(s, s.get("configmaps", "settings").GetDeletionTimestamp())
		s.patch("secrets", "dependent", `{"metadata":{"finalizers":null}}`)
		assert.Empty(s, s.names("secrets"))
		assert.Empty(s, s.names("configmaps"))
	})
}

func TestControllers_DependentOfAbsentOwner(t *testing.T) {
	simulate(t, apitest.GarbageCollection, func(s *simulated) {
		s.create("secrets", `{apiVersion: v1, kind: Secret, metadata: {name: dependent, namespace: default,
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: never, uid: 0cd6e6f0-0000-4000-8000-000000000000}]}}`)
		assert.Empty(s, s.names("secrets"))
	})
}

func TestControllers_NamespaceDeletion(t *testing.T) {
	simulate(t, apitest.NamespaceDeletion|apitest.ServiceAccounts, func(s *simulated) {
		s.create("namespaces", `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`)
		shop := s.resource("configmaps").Namespace("shop")
		root, err := shop.Get(s.Context(), "kube-root-ca.crt", nil)
		require.NoError(s, err)
		certificate, _, _ := unstructured.Get[string](root, "data", "ca.crt")
		assert.Contains(s, certificate, "BEGIN CERTIFICATE")
		_, err = s.resource("serviceaccounts").Namespace("shop").Get(s.Context(), "default", nil)
		require.NoError(s, err)
		_, err = shop.Create(s.Context(), object(s, `{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: shop, finalizers: [example.com/wait]}}`), nil)
		require.NoError(s, err)

		s.delete("namespaces", "shop", metav1.DeletePropagationBackground)
		namespace := s.get("namespaces", "shop")
		assert.Equal(s, []string{"kept"}, namesOf(s, shop))
		conditions, _, _ := unstructured.Get[[]any](namespace, "status", "conditions")
		messages := map[any]any{}
		for _, one := range conditions {
			messages[one.(map[string]any)["type"]] = one.(map[string]any)["message"]
		}
		assert.Equal(s, "Some resources are remaining: configmaps. has 1 resource instances", messages["NamespaceContentRemaining"])
		assert.Equal(s, "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances", messages["NamespaceFinalizersRemaining"])

		_, err = shop.Patch(s.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
		require.NoError(s, err)
		synctest.Wait()
		_, err = s.resource("namespaces").Get(s.Context(), "shop", nil)
		assert.True(s, apierrors.IsNotFound(err), "%v", err)
	})
}

func namesOf(s *simulated, r *dynamic.Resource) (names []string) {
	for obj, err := range r.List(s.Context(), nil) {
		require.NoError(s, err)
		names = append(names, obj.GetName())
	}
	return names
}
