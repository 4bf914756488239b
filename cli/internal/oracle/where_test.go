package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/internal/testing/client"
)

// whereObjects are three deployments and three config maps.
const whereObjects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: small}
spec: {replicas: 1, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: app, image: "app:1"}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: large}
spec: {replicas: 5, selector: {matchLabels: {app: b}}, template: {metadata: {labels: {app: b}}, spec: {containers: [{name: app, image: "app:2"}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: red, labels: {app: web}}
data: {color: red}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: blue, labels: {app: web}}
data: {color: blue}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept}
data: {color: red}
`

// whereFiles name red and blue. The files have other colours: --where is about the objects of the server.
var whereFiles = map[string]string{"both.yaml": `
{apiVersion: v1, kind: ConfigMap, metadata: {name: red}, data: {color: none}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: blue}, data: {color: none}}
`}

func TestAnyctl_WhereSelects(t *testing.T) {
	o := newPrograms(t)
	o.fixtures = client.NewNamespace(t, o.client)
	o.apply(t, o.fixtures, whereObjects)
	const large = " --where '.spec.replicas > 2'"
	const red = ` --where '.data.color == "red"'`
	for _, c := range []struct {
		line, want string
		fails      bool
	}{
		{"scale deploy --replicas=4 --dry-run=server" + large, "deployment.apps/large scaled (server dry run)\n", false},
		{"set image deploy app=app:3 --dry-run=server" + large, "deployment.apps/large image updated (server dry run)\n", false},
		{"set deploy spec.paused=true --dry-run=server" + large, "deployment.apps/large updated (server dry run)\n", false},
		{"rollout restart deploy" + large, "deployment.apps/large restarted\n", false},
		{"label cm -l app=web x=y" + red, "configmap/red labeled\n", false},
		{"annotate cm red blue x=y" + red, "configmap/red annotated\n", false},
		{"annotate cm/red cm/blue x-" + red, "configmap/red annotated\n", false},
		{"label -f both.yaml z=y" + red, "configmap/red labeled\n", false},
		{"wait cm --for=jsonpath={.data.color}=red -l app=web" + red, "configmap/red condition met\n", false},
		{"describe cm -l app=web --show-events=false" + red, "Name:", false},
		{"cordon --where '.metadata.name == \"node-1\"' --dry-run=client", "node/node-1 cordoned (dry run)\n", false},
		{"uncordon node-1 node-2 --where '.metadata.name == \"node-2\"' --dry-run=client", "node/node-2 already uncordoned (dry run)\n", false},
		{"label cm x=y --where '.data.color.x'", "--where: configmap/blue: expected an object but got: string", true},
		{"delete cm red blue -o jq=.data.color --dry-run=server", "red\nblue\n", false},
		{"delete cm red -o nonsense", "error: unable to match a printer suitable for the output format \"nonsense\"", true},
		{"cordon node-1 -o jsonpath={.spec.unschedulable} --dry-run=server", "true", false},
		{"uncordon node-1 -o name", "node/node-1\n", false},
		{"delete cm --where '['", "error: parse jq", true},
		{"delete --where true", "error: You must provide one or more resources by argument or filename.", true},
		{"delete cm --where '.data.color == \"none\"'", "No resources found\n", false},
		{"delete cm red kept --where '.metadata.labels.app == \"web\"' -o name", "configmap/red\n", false},
		{"delete cm --all --where '.data.color == \"blue\"' -o name", "configmap/blue\n", false},
		{"get cm -l '!none' --where '.data.color' -o name", "configmap/kept\n", false},
	} {
		r := o.anyctl.run(t, &oracleCase{line: c.line, files: whereFiles}, o.fixtures, o.kubectl)
		assert.Equal(t, c.fails, r.code != 0, "%s: %s", c.line, r.stderr)
		output := r.stdout + r.stderr
		if c.want[len(c.want)-1] == '\n' {
			assert.Equal(t, c.want, output, c.line)
		} else {
			assert.Contains(t, output, c.want, c.line)
		}
	}
}
