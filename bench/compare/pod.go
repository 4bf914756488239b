//go:build unix

package main

import (
	"fmt"
	"time"

	"github.com/anykind/anykind/bench/internal/measure"
)

// podMeta is what a ReplicaSet's controller says of a pod.
const podMeta = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%[1]s","labels":{"app":"web","pod-template-hash":"7c5ddbdf54"},` +
	`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7c5ddbdf54","uid":"d9607e19-f88f-11e6-a518-42010a800195",` +
	`"controller":true,"blockOwnerDeletion":true}]},`

// podCreated is a pod that is bound to its node. The server adds its defaults, tolerations and managedFields.
const podCreated = podMeta + `"spec":{"nodeName":"node-%[2]d","containers":[{"name":"web","image":"registry.example.com/shop/web:1.27.%[2]d",` +
	`"ports":[{"containerPort":8080}]}]}}`

// podRunning is the same pod with the status that a kubelet writes: about 3 KB, a third of it managedFields.
const podRunning = podMeta + `"status":{"phase":"Running","hostIP":"10.0.0.%[2]d","podIP":"10.1.%[2]d.%[2]d","startTime":"%[3]s",` +
	`"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"%[3]s"},{"type":"PodScheduled","status":"True","lastTransitionTime":"%[3]s"}],` +
	`"containerStatuses":[{"name":"web","image":"registry.example.com/shop/web:1.27.%[2]d",` +
	`"imageID":"registry.example.com/shop/web@sha256:3f4b0f4a8d1c0d1e2b","containerID":"containerd://8a1%012[2]d",` +
	`"ready":true,"started":true,"restartCount":%[2]d,"state":{"running":{"startedAt":"%[3]s"}}}]}}`

func podName(i int) string { return fmt.Sprintf("web-7c5ddbdf54-%05d", i) }

// podBody is the pod of that number, in one of the forms.
func podBody(form string, i int) []byte {
	return fmt.Appendf(nil, form, podName(i), i%measure.NodeCount, time.Now().UTC().Format(time.RFC3339))
}

var deploymentBody = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},` +
	`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"registry.example.com/shop/web:1.27.1"}]}}}}`)
