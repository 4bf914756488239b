package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/internal/testing/client"
)

// debugged is a pod that stays unscheduled, so that its status does not change. No kubelet of the sandbox starts ephemeral containers.
const debugged = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, annotations: {note: "a"}}
spec:
  schedulerName: none
  initContainers: [{name: setup, image: setup}]
  containers:
  - name: app
    image: app:1
    args: [serve]
    env: [{name: MODE, value: a}]
    ports: [{containerPort: 80}]
    livenessProbe: {tcpSocket: {port: 80}}
    readinessProbe: {tcpSocket: {port: 80}}
    startupProbe: {tcpSocket: {port: 80}}
    securityContext: {runAsUser: 5, capabilities: {add: [SYS_TIME]}}
  - {name: side, image: side}
`

// debuggedUser is a pod of a user other than root.
const debuggedUser = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {schedulerName: none, securityContext: {runAsUser: 5}, shareProcessNamespace: false, containers: [{name: app, image: app}]}
`

// debugMasks hide new names, and the status of pods on nodes.
var debugMasks = []mask{
	{`debugger-node-1-\w{5}\b`, "debugger-node-1-NEW"}, {`\bdebugger-\w{5}\b`, "debugger-NEW"},
	{`kube-api-access-\w{5}`, "kube-api-access-NEW"}, {`(?ms)^status:\n.*?^(apiVersion:|---)`, "$1"},
}

var customProfiles = map[string]string{
	"custom.yaml": "env: [{name: MODE, value: b}, {name: MORE, value: c}]\nsecurityContext: {runAsUser: 0}\nvolumeMounts: [{name: x, mountPath: /host}]\n" +
		"resources: {limits: {cpu: 1}}\n",
	"custom.json": `{"env": [{"name": "MORE", "value": "c"}], "securityContext": {"capabilities": {"add": ["KILL"]}}, "imagePullPolicy": "Never"}`,
	"env.yaml":    "env: [{name: MORE, value: c}, {name: MODE, value: b}, {name: LAST, value: d}]\nports: [{containerPort: 80, name: web}]\nargs: null\n",
	"named.yaml":  "name: x\n",
	"broken.yaml": "[",
}

// debugCases are lines of debug with the pods that they create. Only the last attaches: to a copy of a pod on a node of the sandbox.
func debugCases() []oracleCase {
	var cases []oracleCase
	for _, profile := range []string{"general", "baseline", "restricted", "netadmin", "sysadmin", "legacy"} {
		for _, line := range []string{
			"debug web --image=busybox", "debug web --image=busybox -c app --copy-to=copy", "debug web --image=busybox --copy-to=copy", "debug node/node-1 --image=busybox",
		} {
			cases = append(cases, oracleCase{line: line + " --profile=" + profile})
		}
	}
	cases = append(cases, []oracleCase{
		{line: "debug web --image=busybox:1 -c debugger --target=app --env=A=b --image-pull-policy=Always -it --attach=false -- sh -c 'echo a'"},
		{line: "debug pod/web --image=busybox --arguments-only -q -- a b"},
		{line: "debug -f web.yaml --image=busybox", setup: debuggedUser, files: map[string]string{"web.yaml": debuggedUser}},
		{line: "debug web --copy-to=copy --set-image=*=busybox,side=other:2"},
		{line: "debug web --copy-to=copy --image=debian --set-image=app=app:debug -q"},
		{line: "debug web --copy-to=copy -c app -- sleep 1d"},
		{line: "debug web --copy-to=copy -c app --env=A=b --image-pull-policy=Never --arguments-only -- sleep"},
		{line: "debug web --copy-to=copy -c setup -- sleep"},
		{line: "debug web --copy-to=copy --image=busybox --keep-labels --keep-annotations --keep-liveness --keep-readiness --keep-startup --keep-init-containers=false"},
		{line: "debug web --copy-to=copy --image=busybox --share-processes=false --same-node --replace"},
		{line: "debug web --image=busybox --profile=sysadmin", setup: debuggedUser},
		{line: "debug web --copy-to=copy --image=busybox --profile=netadmin", setup: debuggedUser},
		{line: "debug web --image=busybox --profile=restricted", setup: debuggedUser},
		{line: "debug web --image=busybox --custom=custom.json", files: customProfiles},
		{line: "debug web --copy-to=copy --image=busybox -c app --custom=custom.json --profile=netadmin", files: customProfiles},
		{line: "debug web --copy-to=copy --image=busybox -c app --custom=env.yaml", files: customProfiles},
		{line: "debug node/node-1 --image=busybox -c name --custom=custom.json --profile=sysadmin -- sleep", files: customProfiles},
		{line: "debug web --image=busybox --custom=custom.yaml", files: customProfiles, fails: true},
		{line: "debug web --image=busybox --custom=named.yaml", files: customProfiles, fails: true},
		{line: "debug web --image=busybox --custom=broken.yaml", files: customProfiles, fails: true, differs: &difference{[]string{"stderr"}, "the YAML library of anyctl says it in other words"}},
		{line: "debug web --image=busybox --custom=none.yaml", fails: true},

		{line: "debug web", fails: true},
		{line: "debug --image=busybox", fails: true},
		{line: "debug none --image=busybox", fails: true},
		{line: "debug none --image=busybox --copy-to=copy", fails: true},
		{line: "debug node/none --image=busybox", fails: true},
		{line: "debug cm/kube-root-ca.crt --image=busybox", fails: true},
		{line: "debug web --image=Busybox", fails: true},
		{line: "debug web --image=busybox@sha256:1", fails: true},
		{line: "debug web --copy-to=copy --set-image=app=:x", fails: true},
		{line: "debug web --image=busybox --profile=nonsense", fails: true},
		{line: "debug web --image=busybox -t", fails: true},
		{line: "debug web --image=busybox --image-pull-policy=Now", fails: true},
		{line: "debug web --copy-to=copy", fails: true},
		{line: "debug web --copy-to=copy -- sh", fails: true},
		{line: "debug web --copy-to=copy -c new -- sh", fails: true},
		{line: "debug web --copy-to=copy --image=a --target=app", fails: true},
		{line: "debug web --copy-to=web --image=a", fails: true},
		{line: "debug web --image=a --replace", fails: true},
		{line: "debug web --image=a --same-node", fails: true},
		{line: "debug web --image=a --set-image=app=b", fails: true},
		{line: "debug web --attach --copy-to=copy --set-image=app=b", fails: true},
		{line: "debug web --image=busybox -c app", fails: true},
	}...)
	for i := range cases {
		c := &cases[i]
		if c.setup == "" {
			c.setup = debugged
		}
		c.effect = append(c.effect, "pods")
		c.masks = append(debugMasks, c.masks...)
	}
	return append(cases, oracleCase{
		line: "debug solo -i -q --copy-to=copy -c main -- sh", setup: "apiVersion: v1\nkind: Pod\nmetadata: {name: solo}\nspec: {containers: [{name: main, image: a}]}\n",
		stdin: "echo out; echo err >&2\n", masks: debugMasks,
	})
}

// debugOutputCases are lines of debug -o, in this order in a namespace with the pod web. kubectl has no such flag.
var debugOutputCases = []struct {
	line, stdout, stderr string
	fails                bool
}{
	{"debug web --image=a -it -o name", `^$`, `^error: --output can't be used with attached containers \(set --attach=false\)\n$`, true},
	{"debug web --image=a --attach --template={{.kind}}", `^$`, `^error: --output can't be used with attached containers`, true},
	{"debug web --image=a -o nonsense", `^$`, `^error: unable to match a printer suitable for the output format "nonsense"`, true},
	{"get pod web -o jsonpath={.spec.ephemeralContainers}", `^$`, `^$`, false},
	{
		"debug web --image=a --target=app -o jsonpath={.kind}/{.metadata.name}/{.spec.ephemeralContainers[*].image}", `^Pod/web/a$`,
		`^Targeting container "app"\. .*\nDefaulting debug container name to debugger-\w{5}\.\n$`, false,
	},
	{"debug web --image=b -it --attach=false -q -o 'jq=.spec.ephemeralContainers | length'", `^2\n$`, `^$`, false},
	{"debug web --copy-to=copy --set-image=app=c -o yaml", `(?s)^apiVersion: v1\nkind: Pod\n.*  name: copy\n`, `^$`, false},
	{"debug web --copy-to=copy --set-image=app=c -o yaml", `^$`, `^Error from server \(AlreadyExists\)`, true},
	{
		"debug node/node-1 --image=a -o json", `(?s)^\{\n    "apiVersion": "v1",\n    "kind": "Pod",.*"nodeName": "node-1".*\}\n$`,
		`^Creating debugging pod node-debugger-node-1-\w{5} with container debugger on node node-1\.\n$`, false,
	},
	{"debug web node/node-1 --image=a -q -o name", `^pod/web\npod/node-debugger-node-1-\w{5}\n$`, `^$`, false},
}

// debugOutput runs debugOutputCases.
func (o *oracle) debugOutput(t *testing.T) {
	namespace := client.NewKeptNamespace(t, o.client)
	o.waitExists(t, namespace, "serviceaccounts/default")
	o.apply(t, namespace, debugged)
	for _, c := range debugOutputCases {
		r := o.anyctl.run(t, &oracleCase{line: c.line}, namespace, o.kubectl)
		assert.Equal(t, c.fails, r.code != 0, c.line)
		assert.Regexp(t, c.stdout, r.stdout, c.line)
		assert.Regexp(t, c.stderr, r.stderr, c.line)
	}
}
