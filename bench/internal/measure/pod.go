//go:build unix

package measure

// NewPod returns a pod to create, with a name that the server generates.
func NewPod() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"generateName": "call-", "labels": map[string]any{"app": "call"}},
		"spec": map[string]any{"nodeName": "node-1", "containers": []any{map[string]any{
			"name": "web", "image": "registry.example.com/shop/web:1.27.1",
			"ports":     []any{map[string]any{"containerPort": int64(8080)}},
			"env":       []any{map[string]any{"name": "POD_IP", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.podIP"}}}},
			"resources": map[string]any{"requests": map[string]any{"cpu": "50m", "memory": "64Mi"}},
		}}},
	}
}
