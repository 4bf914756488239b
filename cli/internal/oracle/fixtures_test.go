package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

// fixtures are the objects of readOnly cases.
const fixtures = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web, tier: front, fixture: settings}, annotations: {note: "two words"}}
data: {color: blue, size: "3"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, labels: {app: db}}
data: {color: red}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: not-a-secret}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1", ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: solo, labels: {app: solo}}
spec: {containers: [{name: main, image: "example.com/solo:1"}, {name: side, image: "example.com/side:1"}]}
`

// widgets is the custom kind of the fixtures.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.oracle.example.com}
spec:
  group: oracle.example.com
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd], categories: [all]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Owner, type: string, jsonPath: .spec.owner, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer, minimum: 0}, owner: {type: string}, replicas: {type: integer}}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
---
apiVersion: oracle.example.com/v1
kind: Widget
metadata: {name: small, labels: {app: web}}
spec: {size: 1, owner: ann, replicas: 1}
---
apiVersion: oracle.example.com/v1
kind: Widget
metadata: {name: large}
spec: {size: 20, owner: bob, replicas: 2}
`

func (o *oracle) createFixtures(t *testing.T) {
	t.Helper()
	o.apply(t, o.fixtures, widgets)
	for _, pair := range []string{"serviceaccounts/default", "configmaps/kube-root-ca.crt"} {
		o.waitExists(t, o.fixtures, pair) // both runs then list the same objects
	}
	o.apply(t, o.fixtures, fixtures)
	o.waitReady(t, o.fixtures, "deploy/web")
	o.waitReady(t, o.fixtures, "pod/solo")
	o.waitScheduledEvent(t, "solo")
}

// waitScheduledEvent waits for the event of a pod's binding. The scheduler writes it after the pod's start.
func (o *oracle) waitScheduledEvent(t *testing.T, pod string) {
	t.Helper()
	events := client.Resource(t, o.client, "events").Namespace(o.fixtures)
	opts := &dynamic.FollowOptions{FieldSelector: "involvedObject.name=" + pod}
	for change, err := range events.Follow(t.Context(), opts) {
		require.NoError(t, err)
		if change.Object == nil {
			continue
		}
		if reason, _, _ := unstructured.Get[string](change.Object, "reason"); reason == "Scheduled" {
			return
		}
	}
	t.Errorf("no event of the binding of %s", pod)
}
