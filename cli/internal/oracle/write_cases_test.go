package oracle

import "slices"

// writeCases are the lines of replace, taint, expose, autoscale, certificate, auth reconcile and the annotation of apply.
func writeCases() []oracleCase {
	return slices.Concat(replaceCases(), taintCases(), exposeCases(), autoscaleCases(), certificateCases(), reconcileCases(), lastAppliedCases(), kustomizeCases())
}

func replaceCases() []oracleCase {
	files := map[string]string{
		"one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {new: label}}\ndata: {size: big}\n",
		"two.yaml": twoConfigMaps, "raw.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"raw":"1"}}`,
		"scale.yaml":  "apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: web}\nspec: {replicas: 3}\n",
		"widget.yaml": readyWidget,
		"strict.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndatas: {a: b}\n",
		"stale.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, resourceVersion: \"1\"}\n",
	}
	cases := []oracleCase{
		{line: "replace -f one.yaml", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "replace -f -", stdin: webConfigMap, setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "replace -f two.yaml -o name", setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}},
		{line: "replace -f one.yaml --save-config", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "replace -f one.yaml --dry-run=client", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "replace -f one.yaml --dry-run=server -o yaml", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "replace --subresource=status -f widget.yaml", setup: readyWidget, effect: []string{"widget/one"}},
		{line: "replace --subresource=status -f widget.yaml --dry-run=server -o yaml", setup: readyWidget, effect: []string{"widget/one"}},
		{line: "replace --subresource=status -f one.yaml", setup: twoConfigMaps, fails: true, differs: &difference{[]string{"stderr"}, "anyctl says that there is no such subresource"}},
		{line: "replace -f one.yaml", fails: true},
		{line: "replace -f two.yaml", setup: webConfigMap, effect: []string{"cm"}, fails: true, differs: &difference{[]string{"stderr"}, "anyctl adds a line with the count"}},
		{line: "replace -f stale.yaml", setup: webConfigMap, fails: true},
		{line: "replace -f strict.yaml", setup: webConfigMap, fails: true},
		{line: "replace -f strict.yaml --validate=ignore", setup: webConfigMap, effect: []string{"cm/one"}},
		{line: "replace --force -f two.yaml", setup: webConfigMap, effect: []string{"cm"}},
		{line: "replace --force --grace-period=0 -f two.yaml --timeout=1m", setup: webConfigMap, effect: []string{"cm"}},
		{line: "replace --force -f -", stdin: webConfigMap, setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "replace --raw /api/v1/namespaces/$NS/configmaps/one -f raw.json", setup: twoConfigMaps, effect: []string{"cm/one"}, masks: []mask{{`"resourceVersion":"\d+"`, "RV"}}},
		{line: "replace", fails: true},
		{line: "replace -f one.yaml --grace-period=1", fails: true},
		{line: "replace -f one.yaml --timeout=1s", fails: true},
		{line: "replace -f one.yaml --force --dry-run=server", fails: true},
		{line: "replace -f one.yaml --raw /api -o yaml", fails: true},
		{line: "replace -f one.yaml -f two.yaml --raw /api", fails: true},
	}
	for i := range cases {
		cases[i].files = files
	}
	return cases
}

const taintedNode = `
apiVersion: v1
kind: Node
metadata: {name: $NS, labels: {pool: $NS}}
spec: {taints: [{key: old, value: a, effect: NoSchedule}, {key: old, effect: NoExecute}, {key: other, effect: PreferNoSchedule}]}
`

func taintCases() []oracleCase {
	cases := []oracleCase{
		{line: "taint nodes $NS dedicated=gpu:NoSchedule"},
		{line: "taint node $NS a:NoSchedule b=c:PreferNoSchedule -o name"},
		{line: "taint nodes $NS old:NoExecute-"},
		{line: "taint nodes $NS other-"},
		{line: "taint nodes $NS other- new=x:NoSchedule"},
		{line: "taint nodes $NS old=b:NoSchedule", fails: true},
		{line: "taint nodes $NS old=b:NoSchedule --overwrite"},
		{line: "taint nodes -l pool=$NS a:NoSchedule"},
		{line: "taint nodes $NS a:NoSchedule --dry-run=client", differs: &difference{[]string{"stdout"}, "kubectl's line does not say that it is a dry run"}},
		{line: "taint nodes $NS a:NoSchedule --dry-run=server", differs: &difference{[]string{"stdout"}, "kubectl's line does not say that it is a dry run"}},
		{line: "taint nodes $NS none-", fails: true},
		{line: "taint nodes $NS none:NoSchedule-", fails: true},
		{line: "taint nodes missing a:NoSchedule", fails: true},
		{line: "taint pods $NS a:NoSchedule", fails: true},
		{line: "taint nodes a:NoSchedule", fails: true},
		{line: "taint nodes $NS", fails: true},
		{line: "taint", fails: true},
		{line: "taint nodes $NS a:Never", fails: true},
		{line: "taint nodes $NS a=b", fails: true},
		{line: "taint nodes $NS a:NoSchedule a=b:NoSchedule", fails: true},
		{line: "taint nodes $NS a:NoSchedule a-", fails: true},
		{line: "taint nodes $NS a:NoSchedule x", fails: true},
		{line: "taint nodes --all -l a=b a:NoSchedule", fails: true},
		{line: "taint nodes $NS 'a b:NoSchedule'", fails: true},
		{line: "taint nodes $NS a=b=c:NoSchedule", fails: true},
	}
	for i := range cases {
		cases[i].setup = taintedNode
		cases[i].effect = []string{"nodes/$NS"}
		// Controllers add taints to a node without a kubelet, and an annotation to each node.
		cases[i].masks = []mask{
			{`(?s)  - effect: NoSchedule\n    key: node.kubernetes.io/[a-z-]+\n(    timeAdded: "?TIME"?\n)?`, ""},
			{`  annotations:\n    node.alpha.kubernetes.io/ttl: .*\n`, ""},
			{`(?s)\nstatus:.*`, "\nSTATUS\n"},
		}
	}
	return cases
}

const exposedPod = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web, tier: front}}
spec:
  containers:
  - {name: web, image: "example.com/web:1", ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]}
`

func exposeCases() []oracleCase {
	service := []mask{{`(?s)(clusterIPs?|nodePort|uid):[^\n]*\n(  - [^\n]*\n)?`, ""}}
	return []oracleCase{
		{line: "expose deployment web --port=80", setup: webDeployment, effect: []string{"svc/web"}, masks: service},
		{line: "expose deployment web --port=80,443 --target-port=http --name=front -l a=b,c=d", setup: webDeployment, effect: []string{"svc/front"}, masks: service},
		{line: "expose deployment web --port=80 --type=NodePort --selector=app=x --protocol=UDP --session-affinity=ClientIP -o name", setup: webDeployment, effect: []string{"svc/web"}, masks: service},
		{line: "expose pod web", setup: exposedPod, effect: []string{"svc/web"}, masks: service},
		{line: "expose pod web --name=front --cluster-ip=None --external-ip=1.2.3.4", setup: exposedPod, effect: []string{"svc/front"}, masks: service},
		{line: "expose pod web --dry-run=client -o yaml", setup: exposedPod},
		{line: "expose pod web --dry-run=client -o yaml -n $NS --type=LoadBalancer --load-balancer-ip=1.2.3.4", setup: exposedPod},
		{line: "expose pod web --dry-run=server", setup: exposedPod},
		{line: "expose pod web --save-config --port=80", setup: exposedPod, effect: []string{"svc/web"}, masks: service, differs: &difference{[]string{"effect"}, "the fields of the annotation's JSON have another order"}},
		{line: "expose pod web --port=80 --dry-run=client -o yaml --overrides '{\"spec\":{\"type\":\"NodePort\"}}'", setup: exposedPod},
		{line: "expose pod web --port=80 --dry-run=client -o yaml --override-type=json --overrides '[{\"op\":\"add\",\"path\":\"/spec/type\",\"value\":\"NodePort\"}]'", setup: exposedPod},
		{line: "expose deployment web", setup: webDeployment, fails: true},
		{line: "expose cm one --port=80", setup: webConfigMap, fails: true},
		{line: "expose deployment missing --port=80", fails: true},
		{line: "expose deployment web --port=x", setup: webDeployment, fails: true},
		{line: "expose deployment web --port=80 --session-affinity=Other", setup: webDeployment, fails: true},
		{line: "expose deployment web --port=80 --selector=a", setup: webDeployment, fails: true},
		{line: "expose deployment web --port=80 --override-type=x --overrides={}", setup: webDeployment, fails: true},
		{line: "expose", fails: true},
	}
}

func autoscaleCases() []oracleCase {
	effect := []string{"hpa"}
	masks := []mask{{`(?s)status:.*?---`, "---"}}
	return []oracleCase{
		{line: "autoscale deployment web --max=5", setup: webDeployment, effect: effect, masks: masks},
		{line: "autoscale deployment web --min=2 --max=5 --cpu=60% --memory=200Mi --name=other", setup: webDeployment, effect: effect, masks: masks},
		{line: "autoscale deployment/web --max=5 --cpu=500 --memory=70% --save-config -o name", setup: webDeployment, effect: effect, masks: masks, differs: &difference{[]string{"effect"}, "the fields of the annotation's JSON have another order"}},
		{line: "autoscale deployment web --max=5 --cpu-percent=80", setup: webDeployment, effect: effect, masks: masks},
		{line: "autoscale deployment web --max=5 --cpu=500m --dry-run=client -o yaml", setup: webDeployment},
		{line: "autoscale deployment web --max=5 --dry-run=client", setup: webDeployment},
		{line: "autoscale deployment web --max=5 --dry-run=server", setup: webDeployment},
		{line: "autoscale cm one --max=5", setup: webConfigMap, fails: true},
		{line: "autoscale deployment web", setup: webDeployment, fails: true},
		{line: "autoscale deployment web --max=0", setup: webDeployment, fails: true},
		{line: "autoscale deployment web --max=1 --min=2", setup: webDeployment, fails: true},
		{line: "autoscale deployment web --max=1 --cpu=x", setup: webDeployment, fails: true},
		{line: "autoscale deployment web --max=1 --memory=-5%", setup: webDeployment, fails: true},
		{line: "autoscale deployment web --max=1 --cpu=1 --cpu-percent=2", setup: webDeployment, fails: true},
		{line: "autoscale deployment missing --max=1", fails: true},
	}
}

const signingRequest = `
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: $NS}
spec:
  signerName: example.com/none
  usages: [client auth]
  request: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITE1ITUNBUUF3RVRFUE1BMEdBMVVFQXd3R2IzSmhZMnhsTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowRApBUWNEUWdBRXZKd1d6aUNXclB0L1ZkOWVVQnp0K01QY2wzTWkrMVhSZkphVXZ0Nkw4RjBzVUgxVmNtNWRlcGE4CnlWd1dxcFo1dHlCTm90T3R6VWRQdHpqMFlQc2phNkFBTUFvR0NDcUdTTTQ5QkFNQ0EwZ0FNRVVDSUhyQmswWmgKa0hXbE5SR2lsQ0ZNNEtJbmJOMjA1KzNKQzV5SURtVTdHNzA2QWlFQXpmc3BmN1Q5Y0N3YTdYVFg1NlBQR2RLbgorYzFNZVl4NlBLSnNOS1RYTVVvPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K
`

func certificateCases() []oracleCase {
	cases := []oracleCase{
		{line: "certificate approve $NS"},
		{line: "certificate deny $NS -o name"},
		{line: "certificate approve -f csr.yaml"},
		{line: "certificate approve missing", fails: true},
		{line: "certificate approve -f namespace.yaml", fails: true},
		{line: "certificate approve", fails: true},
		{line: "certificate deny", fails: true},
	}
	for i := range cases {
		cases[i].setup = signingRequest
		cases[i].files = map[string]string{"csr.yaml": signingRequest, "namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n"}
		cases[i].effect = []string{"csr/$NS"}
	}
	return cases
}

const storedRoles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, annotations: {a: stored}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}, {apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: User, name: ann, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: robot, namespace: x}]
`

const wantedRoles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: $NS, labels: {new: l}, annotations: {a: wanted, b: c}}
rules: [{apiGroups: ["", apps], resources: [pods, deployments/scale], resourceNames: [one], verbs: [get, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: $NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: User, name: bob, apiGroup: rbac.authorization.k8s.io}, {kind: User, name: ann, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: skipped, namespace: $NS}
`

func reconcileCases() []oracleCase {
	const other = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: reader, namespace: $NS}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n"
	const plain = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: reader, namespace: $NS}\n" +
		"roleRef: {kind: Role, name: reader, apiGroup: rbac.authorization.k8s.io}\nsubjects: [{kind: User, name: ann}]\n"
	const aggregated = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: $NS}\n" +
		"aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\nrules: []\n"
	const cluster = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: $NS}\n" +
		"rules: [{nonResourceURLs: [/healthz, /metrics/a], verbs: [get]}]\n"
	const protected = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n" +
		"metadata: {name: $NS, annotations: {rbac.authorization.kubernetes.io/autoupdate: \"false\"}}\nrules: [{nonResourceURLs: [/metrics/*], verbs: ['*']}]\n"
	cases := []oracleCase{
		{line: "auth reconcile -f roles.yaml"},
		{line: "auth reconcile -f roles.yaml", setup: storedRoles},
		{line: "auth reconcile -f roles.yaml --remove-extra-permissions --remove-extra-subjects", setup: storedRoles},
		{line: "auth reconcile -f roles.yaml --dry-run=client", setup: storedRoles},
		{line: "auth reconcile -f other.yaml", setup: storedRoles},
		{line: "auth reconcile -f plain.yaml", setup: storedRoles, differs: &difference{[]string{"stderr", "effect"}, "kubectl adds a user again that the file has without its default apiGroup"}},
		{line: "auth reconcile -f cluster.yaml", setup: protected},
		{line: "auth reconcile -f cluster.yaml --remove-extra-permissions", setup: aggregated},
		{line: "auth reconcile -f aggregated.yaml", setup: cluster},
		{line: "auth reconcile -f aggregated.yaml --remove-extra-permissions", setup: cluster},
		{line: "auth reconcile -f roles.yaml --dry-run=server", fails: true},
		{line: "auth reconcile", fails: true},
		{line: "auth reconcile -f roles.yaml x", fails: true},
	}
	for i := range cases {
		cases[i].files = map[string]string{"roles.yaml": wantedRoles, "plain.yaml": plain, "other.yaml": other, "cluster.yaml": cluster, "aggregated.yaml": aggregated}
		cases[i].effect = []string{"roles/reader", "rolebindings/reader", "clusterroles/$NS"}
	}
	return cases
}

const appliedConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion":"v1","data":{"color":"blue"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"one","namespace":"$NS"}}
data: {color: blue}
`

func lastAppliedCases() []oracleCase {
	files := map[string]string{"one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {size: big}\n", "same.yaml": webConfigMap}
	editor := func(script string) []string { return []string{"KUBE_EDITOR=" + script} }
	cases := []oracleCase{
		{line: "apply view-last-applied cm one", setup: appliedConfigMap},
		{line: "apply view-last-applied cm/one -o json", setup: appliedConfigMap},
		{line: "apply view-last-applied -f one.yaml", setup: appliedConfigMap},
		{line: "apply view-last-applied cm one -o wide", setup: appliedConfigMap, fails: true},
		{line: "apply view-last-applied -f one.yaml", setup: webConfigMap, fails: true, differs: &difference{[]string{"stderr"}, "kubectl's text has the nil error of Go"}},
		{line: "apply view-last-applied cm missing", fails: true},
		{line: "apply set-last-applied -f one.yaml", setup: appliedConfigMap},
		{line: "apply set-last-applied -f one.yaml -o name", setup: appliedConfigMap},
		{line: "apply set-last-applied -f one.yaml --dry-run=client", setup: appliedConfigMap},
		{line: "apply set-last-applied -f one.yaml --dry-run=server", setup: appliedConfigMap},
		{line: "apply set-last-applied -f same.yaml", setup: appliedConfigMap},
		{line: "apply set-last-applied -f one.yaml", setup: webConfigMap, fails: true},
		{line: "apply set-last-applied -f one.yaml --create-annotation", setup: webConfigMap},
		{line: "apply set-last-applied -f one.yaml", fails: true},
		{line: "apply edit-last-applied cm one", setup: appliedConfigMap, env: editor("sed -i s/blue/green/")},
		{line: "apply edit-last-applied cm one", setup: appliedConfigMap, env: editor("true")},
		{line: "apply edit-last-applied cm one", setup: webConfigMap, env: editor("true"), fails: true},
	}
	for i := range cases {
		cases[i].files = files
		cases[i].effect = []string{"cm/one"}
	}
	return cases
}

func kustomizeCases() []oracleCase {
	files := map[string]string{
		"base/kustomization.yaml": "resources: [one.yaml]\nnamePrefix: k-\n", "base/one.yaml": webConfigMap, "one.yaml": webConfigMap,
	}
	const prefixed = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: k-one}\n"
	cases := []oracleCase{
		{line: "create -k base", effect: []string{"cm/k-one"}},
		{line: "apply --server-side -k base", effect: []string{"cm/k-one"}},
		{line: "replace -k base", setup: prefixed, effect: []string{"cm/k-one"}},
		{line: "get -k base -o name", setup: prefixed},
		{line: "label -k base a=b", setup: prefixed, effect: []string{"cm/k-one"}},
		{line: "delete -k base", setup: prefixed, effect: []string{"cm"}},
		{line: "create -k base -f one.yaml", fails: true},
		{line: "create -k missing", fails: true, differs: &difference{[]string{"stderr"}, "anyctl names the folder and the program"}},
	}
	for i := range cases {
		cases[i].files = files
	}
	return cases
}

// readyWidget has a status, which apply leaves out: the status is a subresource.
const readyWidget = "apiVersion: oracle.example.com/v1\nkind: Widget\nmetadata: {name: one}\nspec: {size: 3}\nstatus: {phase: Ready}\n"
