package dynamic_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// becomes waits until an object has a status and a message that contains text.
func becomes(t *testing.T, r *dynamic.Resource, name string, status readiness.Status, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	var last readiness.Result
	_, err := r.Wait(ctx, name, dynamic.Matches(string(status), func(obj *unstructured.Object) (bool, error) {
		last = r.Readiness(obj)
		return last.Status == status && strings.Contains(last.Message, text), nil
	}))
	require.NoError(t, err, "%s", last)
}

// controlledObjects are objects as the controllers of kube-controller-manager leave them, without nodes and further controllers.
const controlledObjects = `
apiVersion: batch/v1
kind: Job
metadata: {name: suspended}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: late}
spec:
  activeDeadlineSeconds: 1
  template: {spec: {restartPolicy: Never, schedulingGates: [{name: example.com/gate}], containers: [{name: a, image: a}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec: {schedulingGates: [{name: example.com/gate}], containers: [{name: a, image: a}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget}
spec: {minAvailable: 1, selector: {matchLabels: {app: none}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: autoscaler}
spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}
---
apiVersion: v1
kind: Service
metadata: {name: balancer}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ingress}
spec: {defaultBackend: {service: {name: balancer, port: {number: 80}}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {storageClassName: NAMESPACE, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: manual}
spec:
  updateStrategy: {type: OnDelete}
  selector: {matchLabels: {app: manual}}
  template: {metadata: {labels: {app: manual}}, spec: {schedulingGates: [{name: example.com/gate}], containers: [{name: a, image: a}]}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAMESPACE}
provisioner: example.com/none
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.NAMESPACE.example.com}
spec: {group: NAMESPACE.example.com, version: v1, groupPriorityMinimum: 10, versionPriority: 10, service: {namespace: NAMESPACE, name: none}}
`

func TestReadiness_OfControlledObjects(t *testing.T) {
	cluster.NeedComponents(t, cluster.ControllerManager)
	client, namespace := newNamespace(t)
	defaulted := client.WithDefaults(&dynamic.Defaults{Namespace: namespace, FieldManager: "test"})
	_, err := resource(t, client, "serviceaccounts").Namespace(namespace).Wait(t.Context(), "default", dynamic.Exists()) // pods need it
	require.NoError(t, err)
	handles := map[string]*dynamic.Resource{}
	for found, err := range defaulted.ForObjects(t.Context(), documents(strings.ReplaceAll(controlledObjects, "NAMESPACE", namespace))) {
		require.NoError(t, err)
		_, err := found.Resource.Create(t.Context(), found.Object, nil)
		require.NoError(t, err)
		if !found.Resource.APIResource().Namespaced {
			removed(t, found.Resource, found.Object.GetName())
		}
		handles[found.Object.GetName()] = found.Resource
	}
	for name, want := range map[string]struct {
		status readiness.Status
		text   string
	}{
		"suspended":                        {readiness.InProgress, "condition Suspended is True: JobSuspended"},
		"late":                             {readiness.Failed, "condition Failed is True: DeadlineExceeded"},
		"gated":                            {readiness.InProgress, "condition PodScheduled is False: SchedulingGated"},
		"budget":                           {readiness.Current, "disruptions allowed: 0"},
		"autoscaler":                       {readiness.InProgress, "condition AbleToScale is False: FailedGetScale"},
		"balancer":                         {readiness.InProgress, "the load balancer has no address yet"},
		"ingress":                          {readiness.Current, "no controller has published an address"},
		"claim":                            {readiness.InProgress, "WaitForFirstConsumer"},
		"manual":                           {readiness.InProgress, "0 of 1 replicas are ready"},
		namespace:                          {readiness.Current, "no condition or rule says otherwise"},
		"v1." + namespace + ".example.com": {readiness.InProgress, "condition Available is False: ServiceNotFound"},
	} {
		t.Run(name, func(t *testing.T) { becomes(t, handles[name], name, want.status, want.text) })
	}
	_, err = handles["suspended"].Patch(t.Context(), "suspended", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), nil)
	require.NoError(t, err)
	becomes(t, handles["suspended"], "suspended", readiness.Current, "the job has started")
	_, err = handles["balancer"].Subresource("status").Patch(t.Context(), "balancer", types.MergePatchType, []byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`), nil)
	require.NoError(t, err)
	becomes(t, handles["balancer"], "balancer", readiness.Current, "the load balancer has an address")
}

// reportedDefinition is a kind with the subresource status.
const reportedDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: PLURAL, kind: Report}
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// TestReadiness_OfUnwrittenStatus has a kind with the subresource status and a controller: this test.
func TestReadiness_OfUnwrittenStatus(t *testing.T) {
	client, namespace := newNamespace(t)
	group := namespace + ".example.com"
	definitions := resource(t, client, "crd")
	define := func(plural string) {
		definition, err := unstructured.NewYAMLDecoder(strings.NewReader(strings.NewReplacer("GROUP", group, "PLURAL", plural).Replace(reportedDefinition))).Next()
		require.NoError(t, err)
		_, err = definitions.Create(t.Context(), definition, nil)
		require.NoError(t, err)
		removed(t, definitions, plural+"."+group)
	}
	define("reports")
	_, err := definitions.Wait(t.Context(), "reports."+group, dynamic.Ready())
	require.NoError(t, err)
	define("rereports")
	becomes(t, definitions, "rereports."+group, readiness.Failed, "condition NamesAccepted is False")

	reports := resource(t, client, "reports."+group).Namespace(namespace)
	obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
	created, err := reports.Create(t.Context(), obj, nil)
	require.NoError(t, err)
	assert.Equal(t, readiness.Result{Status: readiness.InProgress, Field: "status", Message: "no controller has reported yet"}, reports.Readiness(created))
	assert.Equal(t, readiness.Current, reports.Readiness(created, readiness.Rule{Group: group, Kind: "Report"}).Status)
	offline := client.ForGVR(reports.APIResource().GVR)
	assert.Contains(t, offline.Readiness(created).String(), "Current: there is no status")
	_, err = reports.Subresource("status").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"phase":"Done"}}`), nil)
	require.NoError(t, err)
	_, err = reports.Wait(t.Context(), "a", dynamic.Ready())
	require.NoError(t, err)
}

// TestReadiness_OfBuiltinKinds checks that no built-in kind of the server is a custom resource that waits for its controller.
func TestReadiness_OfBuiltinKinds(t *testing.T) {
	client := connect(t, "admin")
	handles, err := client.PreferredResources(t.Context(), &discovery.ResourceFilter{Verbs: []string{"create"}})
	require.NoError(t, err)
	count := 0
	for _, handle := range handles {
		gvk := handle.APIResource().GVK
		if strings.Contains(gvk.Group, ".") && !strings.HasSuffix(gvk.Group, ".k8s.io") {
			continue // of another test
		}
		count++
		obj := &unstructured.Object{Object: map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind}}
		assert.NotEqual(t, "no controller has reported yet", handle.Readiness(obj).Message, fmt.Sprint(gvk))
	}
	assert.Greater(t, count, 50)
}
