package oracle

import (
	"regexp"
	"slices"
	"testing"
)

// inspectCases are the lines of describe, explain, auth, drain, cordon and uncordon. kubectl has no tree and who.
func inspectCases() []oracleCase {
	return slices.Concat(describeCases(), explainCases(), authCases(), cordonCases(), drainCases())
}

// describeCases compare errors and exit codes. The descriptions differ by intention.
func describeCases() []oracleCase {
	text := &difference{[]string{"stdout"}, "descriptions have other sections, and fields under their own names"}
	return []oracleCase{
		{line: "describe cm settings", readOnly: true, differs: text},
		{line: "describe widgets", readOnly: true, differs: text},
		{line: "describe cm sett", readOnly: true, differs: text},
		{line: "describe -f settings.yaml", readOnly: true, differs: text, files: settingsFile()},
		{line: "describe -f settings.yaml cm", readOnly: true, files: settingsFile(), fails: true},
		{line: "describe cm -l app=none", readOnly: true},
		{line: "describe", fails: true},
		{line: "describe cm missing", readOnly: true, fails: true},
		{line: "describe cm/missing secret/none", readOnly: true, fails: true},
		{line: "describe gizmos", fails: true},
	}
}

// explainCases compare command lines. The module parity compares the text of every kind.
func explainCases() []oracleCase {
	header := &difference{[]string{"stdout"}, "kubectl prints a header before the error"}
	types := &difference{[]string{"stderr"}, "anyctl has one text for an unknown type, with suggestions"}
	path := &difference{[]string{"stderr"}, "anyctl's error names the form of the argument"}
	return []oracleCase{
		{line: "explain pods", readOnly: true},
		{line: "explain deploy --recursive", readOnly: true},
		{line: "explain deploy -R -o plaintext", readOnly: true},
		{line: "explain Deployment", readOnly: true},
		{line: "explain wd", readOnly: true},
		{line: "explain widgets.oracle.example.com.spec", readOnly: true},
		{line: "explain widget.spec.size", readOnly: true},
		{line: "explain deployments.apps.spec.template.spec.containers.image", readOnly: true},
		{line: "explain pods.spec.containers.", readOnly: true},
		{line: "explain deploy.spec.strategy.type", readOnly: true},
		{line: "explain bindings", readOnly: true},
		{line: "explain tokenreviews.spec", readOnly: true},
		{line: "explain cs --recursive", readOnly: true, differs: &difference{[]string{"stderr"}, "anyctl has the server's warning about the deprecated version"}},
		{line: "explain crd.spec.versions.schema.openAPIV3Schema.properties.not.items --recursive", readOnly: true},
		{line: "explain hpa --api-version=autoscaling/v1", readOnly: true},
		{line: "explain events --api-version=events.k8s.io/v1", readOnly: true},
		{line: "explain events.reason", readOnly: true},
		{line: "explain events.events.k8s.io.reason", readOnly: true, differs: &difference{
			[]string{"stdout", "stderr", "code"}, "kubectl looks for a field of the core group's events",
		}, fails: true},

		{line: "explain", fails: true},
		{line: "explain pods services", fails: true},
		{line: "explain nonsense", fails: true, differs: types},
		{line: "explain pods.nonsense", fails: true, differs: header},
		{line: "explain pods.spec.containers.imagee", fails: true, differs: &difference{[]string{"stdout", "stderr"}, "anyctl suggests fields"}},
		{line: "explain pods.spec.nonsense.image", fails: true, differs: &difference{[]string{"stdout", "stderr"}, "anyctl names the first field that does not exist, kubectl the last"}},
		{line: "explain pods.metadata.labels.app", fails: true, differs: header},
		{line: "explain pods[0]", fails: true, differs: path},
		{line: "explain pods.spec.containers[*]", fails: true, differs: path},
		{line: "explain pods -o nonsense", fails: true},
		{line: "explain pods --api-version=v9", fails: true},
		{line: "explain pods --api-version=a/b/c", fails: true},
		{line: "explain pods --api-version=apps/v1", fails: true, differs: &difference{[]string{"stderr"}, "anyctl has one text for a version without the resource"}},
		{line: "explain pods --recursive=nonsense", fails: true},
		{line: "explain pods --nonsense", fails: true},
		{line: "explain pods -o plaintext-openapiv2", readOnly: true, differs: &difference{
			[]string{"stdout", "stderr", "code"}, "anyctl rejects the format, and says why",
		}},
	}
}

func settingsFile() map[string]string {
	return map[string]string{"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"}
}

func authCases() []oracleCase {
	return []oracleCase{
		{line: "auth can-i get pods"},
		{line: "auth can-i create deployments.apps -A"},
		{line: "auth can-i '*' '*'"},
		{line: "auth can-i get pods --subresource=log --context limited", fails: true},
		{line: "auth can-i list cm -n default --context limited"},
		{line: "auth can-i get cm/settings -n default --context limited -q"},
		{line: "auth can-i delete po --context limited", fails: true},
		{line: "auth can-i get /healthz --context limited"},
		{line: "auth can-i get /metrics --context limited", fails: true},
		{line: "auth can-i get nodes"},
		{line: "auth can-i list storageclasses.storage.k8s.io"},
		{line: "auth can-i fly pods"},
		{line: "auth can-i get gizmos.example.com"},
		{line: "auth can-i get gizmos"},
		{line: "auth can-i impersonate users"},
		{line: "auth can-i approve certificates.k8s.io"},
		{line: "auth can-i --list"},
		{line: "auth can-i --list --context limited -n default --no-headers"},
		{line: "auth can-i create pods --as=nobody", fails: true},
		{line: "auth can-i get", fails: true},
		{line: "auth can-i --list pods", fails: true},
		{line: "auth can-i --list -A", fails: true},
		{line: "auth can-i get /healthz --subresource=log", fails: true},
		{line: "auth can-i get pods --no-headers", fails: true},
		{line: "auth whoami"},
		{line: "auth whoami --context token"},
		{line: "auth whoami --context limited -o yaml"},
		{line: "auth whoami -o json", differs: &difference{[]string{"stdout"}, "kubectl prints its type's order of fields, anyctl sorts them"}},
		{line: "auth whoami --as=ann --as-group=devs -o yaml"},
		{line: "auth whoami -o none", fails: true, differs: &difference{[]string{"stderr"}, "anyctl has other formats"}},
	}
}

// node returns the manifest of a node for the pods of a single case. Its taint keeps the scheduler away.
func node(name, extra string) string {
	return `
apiVersion: v1
kind: Node
metadata: {name: ` + name + `, annotations: {kwok.x-k8s.io/node: fake}, labels: {oracle: ` + name + `}}
spec: {unschedulable: false, taints: [{key: oracle, effect: NoSchedule}]}
---
` + extra
}

// createNodes creates the nodes of all cases, and deletes them at the end. Cases with lists of nodes always see the same nodes.
func (o *oracle) createNodes(t *testing.T) {
	t.Helper()
	names := regexp.MustCompile(`kind: Node\nmetadata: \{name: ([a-z-]+)`)
	for _, c := range inspectCases() {
		found := names.FindStringSubmatch(c.setup)
		if found == nil {
			continue
		}
		o.apply(t, "default", node(found[1], ""))
	}
}

// logPrefix replaces the prefix of kubectl's logged warnings.
var logPrefix = []mask{{`(?m)^W\d{4} \S+ +\d+ \S+\] `, "Warning: "}}

func cordonCases() []oracleCase {
	return []oracleCase{
		{line: "cordon oracle-cordon", setup: node("oracle-cordon", "")},
		{line: "cordon -l oracle=oracle-cordon-label", setup: node("oracle-cordon-label", "")},
		{line: "cordon node/oracle-cordon-dry --dry-run=server", setup: node("oracle-cordon-dry", "")},
		{line: "cordon oracle-cordon-client --dry-run=client", setup: node("oracle-cordon-client", "")},
		{line: "cordon oracle-cordon-alone --dry-run", setup: node("oracle-cordon-alone", ""), masks: logPrefix},
		{line: "cordon oracle-cordon-true --dry-run=true", setup: node("oracle-cordon-true", ""), masks: logPrefix},
		{line: "cordon none --dry-run=nonsense", fails: true},
		{line: "uncordon oracle-uncordon", setup: node("oracle-uncordon", "")},
		{line: "uncordon -l oracle=none"},
		{line: "cordon none", fails: true},
		{line: "cordon", fails: true},
		{line: "cordon none -l a=b", fails: true},
		{line: "uncordon none none-2", fails: true},
		{line: "uncordon", fails: true},
	}
}

// onNode is a pod on a node. Its label ns is the namespace of the run.
func onNode(name, node, metadata, spec string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, labels: {app: web, ns: $NS}` + metadata + `}
spec: {nodeName: ` + node + `, terminationGracePeriodSeconds: 1, containers: [{name: web, image: web}]` + spec + `}
---
`
}

const emptyDir = `, volumes: [{name: data, emptyDir: {}}]`

// daemonSet runs on one node alone.
func daemonSet(node string) string {
	return `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent, ns: $NS}}
    spec: {nodeName: ` + node + `, terminationGracePeriodSeconds: 1, containers: [{name: agent, image: agent}]}
---
`
}

func drainCases() []oracleCase {
	const selector = " --pod-selector=ns=$NS"
	oneLine := []mask{{`due to error: .*, continuing`, "due to error, continuing"}} // kubectl's order varies
	return []oracleCase{
		{line: "drain oracle-drain --force" + selector, setup: node("oracle-drain", onNode("a", "oracle-drain", "", "")),
			ready: []string{"pod/a"}, effect: []string{"pods"}},
		{line: "drain oracle-drain-empty" + selector, setup: node("oracle-drain-empty", "")},
		{line: "drain oracle-drain-local --force --delete-emptydir-data --grace-period=0" + selector,
			setup: node("oracle-drain-local", onNode("a", "oracle-drain-local", "", emptyDir)), ready: []string{"pod/a"}, effect: []string{"pods"}},
		{line: "drain oracle-drain-delete --force --disable-eviction --timeout=4m" + selector,
			setup: node("oracle-drain-delete", onNode("a", "oracle-drain-delete", "", "")), ready: []string{"pod/a"}, effect: []string{"pods"}},
		{line: "drain oracle-drain-dry --force --dry-run=client" + selector,
			setup: node("oracle-drain-dry", onNode("a", "oracle-drain-dry", "", "")), ready: []string{"pod/a"}},
		{line: "drain oracle-drain-server --force --dry-run=server" + selector,
			setup: node("oracle-drain-server", onNode("a", "oracle-drain-server", "", "")), ready: []string{"pod/a"}},
		{line: "drain oracle-drain-daemon --ignore-daemonsets" + selector,
			setup: node("oracle-drain-daemon", daemonSet("oracle-drain-daemon")), ready: []string{"daemonset/agent"}},

		{line: "drain oracle-drain-unmanaged" + selector, fails: true,
			setup: node("oracle-drain-unmanaged", onNode("a", "oracle-drain-unmanaged", "", "")), ready: []string{"pod/a"}},
		{line: "drain oracle-drain-data --force" + selector, fails: true,
			setup: node("oracle-drain-data", onNode("a", "oracle-drain-data", "", emptyDir)), ready: []string{"pod/a"}},
		{line: "drain oracle-drain-budget --force --timeout=4s" + selector, fails: true, ready: []string{"pod/a", "pdb/web"},
			differs: &difference{[]string{"stdout"}, "kubectl sees after a pause of five seconds that the time is over, and prints the pod once more"},
			setup: node("oracle-drain-budget", onNode("a", "oracle-drain-budget", "", "")+`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
`)},
		{line: "drain oracle-drain-two" + selector, fails: true, unordered: true, ready: []string{"pod/a", "pod/b"}, masks: oneLine,
			setup: node("oracle-drain-two", onNode("a", "oracle-drain-two", "", "")+onNode("b", "oracle-drain-two", "", emptyDir))},
		{line: "drain none", fails: true},
		{line: "drain", fails: true},
		{line: "drain none --pod-selector=a==b==c", fails: true},
	}
}
