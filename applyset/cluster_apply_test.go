package applyset_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/applyset"
)

const shop = `
apiVersion: example.com/v1
kind: Trinket
metadata: {name: ring, namespace: NAMESPACE-more}
spec: {size: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE-more}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers:
      - name: web
        image: nginx
        args: [a, b]
        ports: [{containerPort: 80}, {containerPort: 81, name: more}]
        env: [{name: A, value: "1"}]
        resources: {requests: {cpu: 1000m, memory: 64Mi}}
      volumes: [{name: scratch, emptyDir: {sizeLimit: 1024Mi}}]
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: NAMESPACE-more}
stringData: {password: secret}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NAMESPACE-more}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: NAMESPACE-more}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web, namespace: NAMESPACE-more}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE-more}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trinkets.NAMESPACE.example.com}
spec:
  group: NAMESPACE.example.com
  scope: Namespaced
  names: {plural: trinkets, singular: trinket, kind: Trinket, listKind: TrinketList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
`

func (e *environment) shop() string {
	return strings.ReplaceAll(shop, "example.com/v1\nkind: Trinket", e.namespace+".example.com/v1\nkind: Trinket")
}

func TestSet_ApplyAndPrune(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("shop")
	objects := e.objects(t, e.shop())
	events, err := set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{
		"created Namespace " + e.namespace + "-more", "created CustomResourceDefinition trinkets." + e.namespace + ".example.com",
		"created ServiceAccount web", "created Role web", "created Secret password", "created ConfigMap settings", "created Service web",
		"created Deployment web", "created Trinket ring",
	}, outcomes(events))

	e.requests.reset()
	events, err = set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	for _, event := range events {
		assert.Equal(t, applyset.Unchanged, event.Action, "%s", event.Object)
	}
	requests := e.requests.reset()
	assert.Len(t, requests, 1+9, "the parent and each kind: %q", requests)

	events, err = set.Apply(t.Context(), objects[2:3], nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{
		"unchanged Secret password", "pruned Trinket ring", "pruned Deployment web", "pruned ConfigMap settings", "pruned Service web",
		"pruned Role web", "pruned ServiceAccount web", "pruned CustomResourceDefinition trinkets." + e.namespace + ".example.com",
		"kept Namespace " + e.namespace + "-more",
	}, outcomes(events))

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // the deletion of a Namespace needs its controller
	defer cancel()
	events, err = set.Delete(ctx, nil)
	require.NoError(t, err)
	assert.Subset(t, outcomes(events), []string{"pruned Secret password", "pruned Namespace " + e.namespace + "-more"})
	_, err = set.Delete(t.Context(), nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// TestSet_ApplyRejectsMetadataOfWrongType applies labels and a namespace that the API server would reject, if the set sent them.
func TestSet_ApplyRejectsMetadataOfWrongType(t *testing.T) {
	e := newEnvironment(t)
	e.requests.reset()
	for metadata, want := range map[string]string{
		"{name: one, labels: {app: web, version: 1}}": ".metadata.labels",
		"{name: one, labels: [web]}":                  ".metadata.labels",
		"{name: one, namespace: 2024}":                ".metadata.namespace",
	} {
		_, err := e.set("types").Apply(t.Context(), e.objects(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: "+metadata+"\n"), nil)
		require.ErrorContains(t, err, want)
	}
	assert.Empty(t, writes(e.requests.reset()))
}
