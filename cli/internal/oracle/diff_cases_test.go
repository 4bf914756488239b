package oracle

import "strings"

// diffMasks hide the names of temporary folders and the times of files.
var diffMasks = []mask{
	{`(LIVE|MERGED)-\d+`, "$1"}, {`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}`, "TIME"},
	{`(?m)^W\d{4} .*keeps changing, diffing without lock\n`, ""}, // kubectl takes field conflicts for changed objects
}

const immutableConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
immutable: true
data: {color: blue}
`

// diffCases compare diff --server-side: anyctl knows no other.
func diffCases() []oracleCase {
	change := func(text string, pairs ...string) map[string]string {
		return map[string]string{"a.yaml": strings.NewReplacer(pairs...).Replace(text)}
	}
	cases := []oracleCase{
		{line: "diff --server-side -f a.yaml", files: change(webConfigMap), fails: true},
		{line: "diff --server-side -f a.yaml --force-conflicts", setup: webConfigMap, files: change(webConfigMap)},
		{line: "diff --server-side -f a.yaml --force-conflicts -l app=web", setup: twoConfigMaps, files: change(twoConfigMaps, "blue", "green", "red", "black"), fails: true},
		{line: "diff --server-side -f a.yaml --force-conflicts -R", setup: twoConfigMaps, files: change(twoConfigMaps, "blue", "green", "red", "black"), fails: true},
		{line: "diff --server-side -f a.yaml --concurrency 4", setup: twoConfigMaps, files: change(twoConfigMaps, "app: db", "app: db, more: yes_"), fails: true, differs: &difference{[]string{"stderr"}, "white space in a server's message is joined"}},
		{line: "diff --server-side -f a.yaml", setup: webConfigMap, files: change(webConfigMap, "blue", "green"), fails: true},
		{line: "diff --server-side -f a.yaml --field-manager=oracle", setup: webConfigMap, files: change(webConfigMap, "blue", "green"), fails: true},
		{line: "diff --server-side -f a.yaml --force-conflicts --show-managed-fields", setup: webConfigMap, files: change(webConfigMap, "color: blue", "color: green, size: big"), fails: true},
		{line: "diff --server-side -f a.yaml --field-manager=oracle", setup: webConfigMap, files: change(webConfigMap, "data: {color: blue}", ""), fails: true},
		{line: "diff --server-side -f a.yaml --show-managed-fields", setup: webConfigMap, files: change(webConfigMap), fails: true},
		{line: "diff --server-side --force-conflicts -f a.yaml", setup: webDeployment, files: change(webDeployment, "web:1", "web:2", "replicas: 2", "replicas: 3"), fails: true, ready: []string{"deployments/web"}},
		{line: "diff --server-side -f a.yaml -f b.yaml", files: map[string]string{"a.yaml": webConfigMap, "b.yaml": webDeployment}, fails: true},
		{line: "diff --server-side -f - --force-conflicts", setup: webConfigMap, stdin: strings.ReplaceAll(webConfigMap, "blue", "green"), fails: true},
		{line: "diff --server-side -f .", files: map[string]string{"x.yaml": webConfigMap, "y.yaml": strings.ReplaceAll(webConfigMap, "one", "three")}, fails: true},
		{line: "diff --server-side -f a.yaml -n $NS", files: change(webConfigMap), fails: true},
		{line: "diff --server-side -f a.yaml -n default", files: change(webConfigMap, "name: one", "name: one, namespace: other"), fails: true},
		{line: "diff --server-side -f a.yaml", files: change(webConfigMap, "name: one", "name: one, namespace: missing-namespace"), fails: true},
		{line: "diff --server-side -f a.yaml", files: change(halfWrong), fails: true},
		{line: "diff --server-side -f a.yaml", files: change(webConfigMap, "\ndata:", "\ndota: {}\ndata:"), fails: true},
		{line: "diff --server-side -f a.yaml", files: change(unknownKind), fails: true, differs: &difference{[]string{"stderr"}, "the position in the file replaces a hint"}},
		{line: "diff --server-side -f a.yaml", setup: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {same: b25l, changed: b25l, gone: b25l}\n",
			files: change("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {same: b25l, added: b25l}\n"), fails: true},
		{line: "diff --server-side -f a.yaml --field-manager=oracle", setup: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {same: b25l, changed: b25l, gone: b25l}\n",
			files: change("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {same: b25l, changed: dHdv, added: b25l}\n"), fails: true},
		{line: "diff --server-side -f a.yaml --show-secrets", files: change("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: text}\n"), fails: true},
		{line: "diff --server-side -f a.yaml", env: []string{"KUBECTL_EXTERNAL_DIFF=diff -N -q"}, files: change(webConfigMap), fails: true},
		{line: "diff --server-side -f a.yaml --field-manager=oracle", setup: twoConfigMaps, env: []string{"KUBECTL_EXTERNAL_DIFF=diff -r -s"}, files: change(twoConfigMaps, "red", "black"), fails: true},
		{line: "diff --server-side -f a.yaml", env: []string{"KUBECTL_EXTERNAL_DIFF=missing-program"}, files: change(webConfigMap), fails: true},
		{line: "diff --server-side -f a.yaml", env: []string{"KUBECTL_EXTERNAL_DIFF=true"}, files: change(webConfigMap)},
		{line: "diff --server-side -f a.yaml", setup: webDeployment, files: change(webDeployment, "app: web", "app: new"), fails: true, differs: &difference{[]string{"stderr"}, "white space in a server's message is joined"}},
		{line: "diff --server-side -f a.yaml --field-manager=oracle", setup: immutableConfigMap, files: change(immutableConfigMap, "blue", "green"), fails: true},
		{line: "diff --server-side", fails: true},
		{line: "diff --server-side -f missing.yaml", fails: true},
		{line: "diff --server-side --unknown", fails: true},
		{line: "diff --server-side -f a.yaml extra", files: change(webConfigMap), fails: true},
		{line: "diff --server-side -f a.yaml", files: change(brokenYAML), fails: true, differs: &difference{[]string{"stderr"}, "the position in the file, and the line in it"}},
		{line: "diff --server-side -f a.yaml", files: change("apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS}\n")},
		{line: "diff --server-side -f a.yaml", files: change("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: diff-new}\nrules: []\n"), fails: true},
		{line: "diff --server-side -f a.yaml", files: change("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: None, ports: [{port: 80}]}\n"), fails: true},
		{line: "diff --server-side -f a.yaml", files: change("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {text: \"a\\nb\\n\", number: '1'}\n"), fails: true},
		{line: "diff --server-side -f a.yaml --as=nobody", files: change(webConfigMap), fails: true},
	}
	for i := range cases {
		cases[i].masks = append(cases[i].masks, diffMasks...)
	}
	return cases
}
