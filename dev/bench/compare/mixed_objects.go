//go:build unix

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// fields is an object of JSON.
type fields = map[string]any

// mixedSet is the objects of many kinds in a namespace.
type mixedSet struct {
	namespace string
	kinds     []customKind
}

// mixed is an object of a mixed set.
type mixed struct {
	name, resource string // "deployments.v1.apps"
	object         fields
	changed        string                 // the patched subresource, "/status" or ""
	patch          func(at string) fields // a change besides labels and annotations
}

// path returns the path of the object, or for "" as its name of all objects.
func (m *mixed) path(namespace, name string) string {
	plural, group, _ := strings.Cut(m.resource, ".")
	version, group, _ := strings.Cut(group, ".")
	path := "/api/" + version
	if group != "" {
		path = "/apis/" + group + "/" + version
	}
	path += "/namespaces/" + namespace + "/" + plural
	if name != "" {
		path += "/" + name
	}
	return path
}

// body returns the object to create.
func (m *mixed) body() []byte {
	obj := maps.Clone(m.object)
	obj["metadata"] = fields{"name": m.name, "labels": fields{"app.kubernetes.io/name": m.name[:strings.LastIndexByte(m.name, '-')], "app.kubernetes.io/managed-by": "bench"}}
	return toJSON(obj)
}

// change returns a merge patch of a label, the annotation for measuring delays, and the spec, status or data.
func (m *mixed) change(at time.Time) []byte {
	patch := m.patch(at.UTC().Format(time.RFC3339))
	patch["metadata"] = fields{"labels": fields{"revision": fmt.Sprint(at.UnixMilli())}, "annotations": fields{measure.Changed: fmt.Sprint(at.UnixNano())}}
	return toJSON(patch)
}

func toJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible for maps, lists, strings and numbers
	}
	return text
}

// resources lists the resources of the objects, as of schema.ParseResourceArg.
func (s *mixedSet) resources() []string {
	all := []string{"pods.v1.", "deployments.v1.apps", "configmaps.v1.", "secrets.v1.", "events.v1."}
	for _, kind := range s.kinds {
		all = append(all, kind.resource())
	}
	return all
}

// object returns the i-th object. Of twenty objects, eight are pods, four custom resources, three events, two config maps, two
// secrets and one is a deployment.
func (s *mixedSet) object(i int) *mixed {
	group := i / 20
	rng := rand.New(rand.NewPCG(uint64(i), 21)) //nolint:gosec // the same objects in every run
	switch nth := i % 20; {
	case nth < 8:
		return mixedPod(group*8+nth, rng)
	case nth < 12:
		number := group*4 + nth - 8
		return mixedCustom(s.kinds[number%len(s.kinds)], number, number/customKinds)
	case nth < 15:
		return mixedEvent(s.namespace, group*3+nth-12, rng)
	case nth < 17:
		return mixedConfigMap(group*2+nth-15, rng)
	case nth < 19:
		return mixedSecret(group*2+nth-17, rng)
	default:
		return mixedDeployment(group)
	}
}

// mixedReplicas is the number of pods of a workload in a mixed set.
const mixedReplicas = 5

func mixedPod(i int, rng *rand.Rand) *mixed {
	workload := i / mixedReplicas
	spec := podSpec(workload)
	spec["nodeName"] = measure.NodeName(i)
	ip := fmt.Sprintf("10.%d.%d.%d", rng.IntN(256), rng.IntN(256), rng.IntN(256))
	return &mixed{
		name: fmt.Sprintf("workload%d-%05x", workload, i), resource: "pods.v1.", object: fields{"spec": spec}, changed: "/status",
		patch: func(at string) fields {
			var containers []any
			for _, c := range spec["containers"].([]any) { //nolint:forcetypeassert // podSpec's
				containers = append(containers, fields{
					"name": c.(fields)["name"], "image": c.(fields)["image"], "imageID": c.(fields)["image"].(string) + "@sha256:3f4b0f4a8d1c0d1e2b", //nolint:forcetypeassert // podSpec's
					"containerID": fmt.Sprintf("containerd://%016x", rng.Uint64()), "ready": true, "started": true, "restartCount": rng.IntN(5), "state": fields{"running": fields{"startedAt": at}},
				})
			}
			return fields{"status": fields{
				"phase": "Running", "hostIP": "10.0.0.1", "podIP": ip, "podIPs": []any{fields{"ip": ip}}, "startTime": at, "containerStatuses": containers,
				"conditions": []any{
					fields{"type": "Ready", "status": "True", "lastTransitionTime": at}, fields{"type": "ContainersReady", "status": "True", "lastTransitionTime": at},
					fields{"type": "PodScheduled", "status": "True", "lastTransitionTime": at},
				},
			}}
		},
	}
}

// podSpec returns the spec of a workload's pods. Workloads differ in containers and volumes.
func podSpec(workload int) fields {
	rng := rand.New(rand.NewPCG(uint64(workload), 5)) //nolint:gosec // the same objects in every run
	var containers, volumes []any
	for v := range rng.IntN(3) {
		volumes = append(volumes, fields{"name": fmt.Sprintf("config-%d", v), "configMap": fields{"name": fmt.Sprintf("config-%d", rng.IntN(100))}})
	}
	for c := range 1 + rng.IntN(3) {
		var env, mounts []any
		for e := range rng.IntN(12) {
			env = append(env, fields{"name": fmt.Sprintf("SETTING_%d", e), "value": fmt.Sprintf("https://service-%d.shop.svc:8443/v%d", rng.IntN(1000), rng.IntN(4))})
		}
		for v := range volumes {
			mounts = append(mounts, fields{"name": fmt.Sprintf("config-%d", v), "mountPath": fmt.Sprintf("/etc/config-%d", v), "readOnly": true})
		}
		port := 8080 + rng.IntN(20)
		containers = append(containers, fields{
			"name": fmt.Sprintf("container-%d", c), "image": fmt.Sprintf("registry.example.com/shop/service-%d:1.%d.%d", workload, rng.IntN(30), rng.IntN(10)),
			"args": []any{"serve", fmt.Sprintf("--listen=:%d", port)}, "env": env, "volumeMounts": mounts, "ports": []any{fields{"containerPort": port}},
			"resources":      fields{"requests": fields{"cpu": fmt.Sprintf("%dm", 10*(1+rng.IntN(50))), "memory": fmt.Sprintf("%dMi", 32*(1+rng.IntN(16)))}},
			"readinessProbe": fields{"httpGet": fields{"path": "/ready", "port": port}, "periodSeconds": 5 + rng.IntN(10)},
		})
	}
	return fields{"containers": containers, "volumes": volumes, "serviceAccountName": fmt.Sprintf("workload-%d", workload)}
}

func mixedDeployment(i int) *mixed {
	match := fields{"workload": fmt.Sprint(i)}
	return &mixed{
		name: fmt.Sprintf("workload-%05d", i), resource: "deployments.v1.apps",
		object: fields{"spec": fields{"replicas": mixedReplicas, "selector": fields{"matchLabels": match}, "template": fields{"metadata": fields{"labels": match}, "spec": podSpec(i)}}},
		patch: func(at string) fields {
			return fields{"spec": fields{"template": fields{"metadata": fields{"annotations": fields{"restartedAt": at}}}}}
		},
	}
}

func mixedConfigMap(i int, rng *rand.Rand) *mixed {
	var lines strings.Builder
	for n := range 5 + rng.IntN(60) {
		fmt.Fprintf(&lines, "setting.%d = %d\n", n, rng.IntN(1_000_000))
	}
	return &mixed{
		name: fmt.Sprintf("config-%05d", i), resource: "configmaps.v1.", object: fields{"data": fields{"server.properties": lines.String()}},
		patch: func(at string) fields { return fields{"data": fields{"reloaded": at}} },
	}
}

func mixedSecret(i int, rng *rand.Rand) *mixed {
	random := make([]byte, 200+rng.IntN(2000)) // a token or a certificate: incompressible
	for n := range random {
		random[n] = byte(rng.Uint32())
	}
	return &mixed{
		name: fmt.Sprintf("secret-%05d", i), resource: "secrets.v1.", object: fields{"type": "Opaque", "data": fields{"token": random}},
		patch: func(at string) fields {
			return fields{"data": fields{"rotated": base64.StdEncoding.EncodeToString([]byte(at))}}
		},
	}
}

func mixedEvent(namespace string, i int, rng *rand.Rand) *mixed {
	reason := []string{"Pulled", "Created", "Started", "Unhealthy", "BackOff", "Scheduled"}[rng.IntN(6)]
	name := fmt.Sprintf("workload%d-%05x", i/mixedReplicas, i)
	return &mixed{
		name: fmt.Sprintf("event-%05x", i), resource: "events.v1.",
		object: fields{
			"involvedObject": fields{"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": fmt.Sprintf("d9607e19-f88f-11e6-a518-%012x", i)},
			"reason":         reason, "message": fmt.Sprintf("%s: container container-%d of pod %s", reason, rng.IntN(3), name), "type": "Normal",
			"source": fields{"component": "kubelet", "host": measure.NodeName(i)}, "count": 1,
		},
		patch: func(at string) fields { return fields{"count": 2 + rng.IntN(1000), "lastTimestamp": at} },
	}
}

// mixedCustom returns a custom resource with the fields of an example of its kind.
func mixedCustom(kind customKind, i, example int) *mixed {
	obj := maps.Clone(kind.examples[example%len(kind.examples)])
	obj["apiVersion"] = kind.group + "/v1"
	obj["kind"] = kind.kind
	return &mixed{
		name: fmt.Sprintf("custom-%05d", i), resource: kind.resource(), object: obj,
		patch: func(at string) fields {
			condition := fields{"type": "Ready", "status": "True", "reason": "Reconciled", "lastTransitionTime": at}
			return fields{"status": fields{"observedGeneration": i, "conditions": []any{condition}}}
		},
	}
}
