//go:build unix

package main

import (
	"fmt"
	"time"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// podMeta is the metadata set by a ReplicaSet's controller: [1] is the pod's name, [4] the number of its workload.
const podMeta = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%[1]s","labels":{"app":"web-%[4]d","pod-template-hash":"7c5d%06[4]d"},` +
	`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7c5d%06[4]d","uid":"d9607e19-f88f-11e6-a518-%012[4]d",` +
	`"controller":true,"blockOwnerDeletion":true}]},`

// podCreated is a pod with a node and a volume for its token. The server adds defaults, tolerations and managedFields.
const podCreated = podMeta + `"spec":{"nodeName":"node-%[2]d","containers":[{"name":"web","image":"registry.example.com/shop/web:1.27.%[4]d",` +
	`"ports":[{"containerPort":8080}],"env":[{"name":"WORKLOAD","value":"%[4]d"},{"name":"POD_IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}],` +
	`"resources":{"requests":{"cpu":"50m","memory":"64Mi"},"limits":{"memory":"128Mi"}},` +
	`"volumeMounts":[{"name":"kube-api-access-%05[5]x","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}],` +
	`"volumes":[{"name":"kube-api-access-%05[5]x","projected":{"sources":[{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},` +
	`{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}]}}]}}`

// podRunning is the same pod with the status of a kubelet: about 4 KB, a third of it managedFields.
const podRunning = podMeta + `"status":{"phase":"Running","hostIP":"10.0.0.%[2]d","podIP":"%[6]s","startTime":"%[3]s",` +
	`"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"%[3]s"},{"type":"PodScheduled","status":"True","lastTransitionTime":"%[3]s"}],` +
	`"containerStatuses":[{"name":"web","image":"registry.example.com/shop/web:1.27.%[4]d",` +
	`"imageID":"registry.example.com/shop/web@sha256:3f4b0f4a8d1c0d1e2b","containerID":"containerd://8a1%012[5]d",` +
	`"ready":true,"started":true,"restartCount":%[2]d,"state":{"running":{"startedAt":"%[3]s"}}}]}}`

// replicas is the number of pods of a workload.
const replicas = 20

// podIP returns a unique address.
func podIP(i int) string { return fmt.Sprintf("10.%d.%d.%d", 1+i>>16, i>>8&255, i&255) }

// podStart returns a unique start time.
func podStart(i int) string {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 7 * time.Second).Format(time.RFC3339)
}

// podBody returns a pod in the given form.
func podBody(form string, i int) []byte {
	return fmt.Appendf(nil, form, measure.PodName(i), i%measure.NodeCount, podStart(i), i/replicas, i, podIP(i))
}

var deploymentBody = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},` +
	`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"registry.example.com/shop/web:1.27.1"}]}}}}`)
