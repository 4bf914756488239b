package apitest

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// freshCluster returns the initial objects of an API server in their stored form. They are written out to start quickly:
// computing them would first compile the schemas of their kinds.
func freshCluster(now time.Time) iter.Seq2[store.Key, store.Object] {
	created := now.UTC().Format(time.RFC3339)
	return func(yield func(store.Key, store.Object) bool) {
		for _, name := range []string{"kube-system", "kube-node-lease", "kube-public", "default"} {
			obj := namespace(name)
			owned := map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{".": map[string]any{}, "f:kubernetes.io/metadata.name": map[string]any{}}}}
			setIdentity(obj, created, owned)
			if !yield(namespaceKey(name), obj) {
				return
			}
		}
		service := kubernetesService()
		setIdentity(service, created, ownedByService())
		yield(store.Key{Resource: "services", Namespace: "default", Name: "kubernetes"}, service)
	}
}

func setIdentity(obj map[string]any, created string, owned map[string]any) {
	metadata := nested.Map(obj, "metadata")
	metadata["uid"] = string(uuid.NewUUID())
	metadata["creationTimestamp"] = created
	metadata["managedFields"] = []any{map[string]any{
		"manager": "kube-apiserver", "operation": "Update", "apiVersion": "v1", "time": created, "fieldsType": "FieldsV1", "fieldsV1": owned,
	}}
}

func namespace(name string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"kubernetes.io/metadata.name": name}},
		"spec":     map[string]any{"finalizers": []any{"kubernetes"}},
		"status":   map[string]any{"phase": "Active"},
	}
}

func namespaceKey(name string) store.Key { return store.Key{Resource: "namespaces", Name: name} }

func kubernetesService() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{
			"name": "kubernetes", "namespace": "default",
			"labels": map[string]any{"component": "apiserver", "provider": "kubernetes"},
		},
		"spec": map[string]any{
			"type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": []any{"10.96.0.1"}, "sessionAffinity": "None",
			"ipFamilies": []any{"IPv4"}, "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
			"ports": []any{map[string]any{"name": "https", "protocol": "TCP", "port": int64(443), "targetPort": int64(6443)}},
		},
		"status": map[string]any{"loadBalancer": map[string]any{}},
	}
}

func ownedByService() map[string]any {
	leaf := func(names ...string) map[string]any {
		fields := map[string]any{}
		for _, name := range names {
			fields["f:"+name] = map[string]any{}
		}
		return fields
	}
	labels := leaf("component", "provider")
	labels["."] = map[string]any{}
	port := leaf("name", "port", "protocol", "targetPort")
	port["."] = map[string]any{}
	spec := leaf("clusterIP", "internalTrafficPolicy", "ipFamilyPolicy", "sessionAffinity", "type")
	spec["f:ports"] = map[string]any{".": map[string]any{}, `k:{"port":443,"protocol":"TCP"}`: port}
	return map[string]any{"f:metadata": map[string]any{"f:labels": labels}, "f:spec": spec}
}
