package oracle

import (
	"slices"
	"strings"
)

// changeCases are the lines of create, apply, delete, edit, patch, set, label, annotate, scale, wait and rollout.
func changeCases() []oracleCase {
	return slices.Concat(
		createCases(), applyCases(), deleteCases(), editCases(), patchCases(), setCases(),
		metadataCases(), scaleCases(), waitCases(), rolloutCases(),
	)
}

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}, {name: side, image: "example.com/side:1"}]}
`

const twoConfigMaps = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {app: web}}
data: {color: blue}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, labels: {app: db, tier: back}, annotations: {note: first}}
data: {color: red}
`

const webConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {color: blue}
`

const heldConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [oracle.example.com/hold]}
`

// halfWrong is a manifest with three objects. The server rejects the second.
const halfWrong = `
apiVersion: v1
kind: ConfigMap
metadata: {name: first}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Second_}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: third}
`

// brokenYAML has two valid objects before an invalid document.
const brokenYAML = `
apiVersion: v1
kind: ConfigMap
metadata: {name: first}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second
`

const unknownKind = `
apiVersion: none.example.com/v1
kind: Tree
metadata: {name: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: behind}
`

const (
	whatWasDone  = "anyctl also says what was done and what was not"
	whereItIs    = "anyctl names the document and the line"
	whyNot       = "anyctl says why the condition does not hold"
	dryRunLine   = "kubectl's line does not say that it was a dry run"
	podTemplates = "a pod template is described: describe's text is not compared, anyctl prints YAML"
)

func createCases() []oracleCase {
	files := map[string]string{
		"two.yaml": twoConfigMaps, "half.yaml": halfWrong, "unknown.yaml": unknownKind, "dir/a.yaml": twoConfigMaps,
		"dir/b.json":  `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}]}`,
		"one.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {color: blue}\n",
		"raw.json":    `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"}}`,
		"strict.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: strict}\ndatas: {a: b}\n",
		"other.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: elsewhere}\n",
		"app.env":     "# comment\nA=1\nB=two words\n",
	}
	cases := []oracleCase{
		{line: "create -f two.yaml", effect: []string{"configmaps/one", "configmaps/two"}},
		{line: "create -f -", stdin: twoConfigMaps, effect: []string{"configmaps/one"}},
		{line: "create -f dir", effect: []string{"configmaps/one", "secrets/s"}},
		{line: "create -f two.yaml -o name"},
		{line: "create -f two.yaml --dry-run=server -o yaml", effect: []string{"configmaps/one"}},
		{line: "create -f two.yaml --dry-run=client", effect: []string{"configmaps/one"}},
		{line: "create -f strict.yaml --validate=warn", effect: []string{"configmaps/strict"}},
		{line: "create deployment web --image=example.com/web:1 --replicas=2 --port=80 -- run it", effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "create deployment web --image=a/b,c/d:2 --dry-run=client -o yaml"},
		{line: "create service clusterip web --tcp=80:8080,443 -o name"},
		{line: "create service nodeport web --tcp=80 --dry-run=client -o yaml"},
		{line: "create service loadbalancer web --tcp=80:http --dry-run=client -o yaml"},
		{line: "create service externalname web --external-name=example.com --dry-run=client -o yaml"},
		{line: "create configmap c --from-literal=a=1 --from-literal=b=x=y --from-file=app.env", effect: []string{"cm/c"}},
		{line: "create configmap c --from-env-file=app.env -o yaml"},
		{line: "create secret generic s --from-literal=user=ann --type=example.com/t", effect: []string{"secret/s"}},
		{line: "create secret docker-registry s --docker-username=u --docker-password=p --docker-server=r.example.com --dry-run=client -o yaml"},
		{line: "create namespace n --dry-run=client -o yaml"},
		{line: "create sa robot", effect: []string{"sa/robot"}},
		{line: "create job j --image=example.com/j -- date", effect: []string{"job/j"}, masks: statusMasks()},
		{line: "create cronjob c --image=example.com/c --schedule='*/5 * * * *' --dry-run=client -o yaml"},
		{line: "create role r --verb=get,list --resource=pods,deploy,pods/log -o yaml"},
		{line: "create clusterrole r --verb=get --non-resource-url=/logs/* --dry-run=client -o yaml"},
		{line: "create rolebinding b --clusterrole=view --user=ann --serviceaccount=ns:robot --group=g", effect: []string{"rolebinding/b"}},
		{line: "create clusterrolebinding b --clusterrole=view --user=ann --dry-run=client -o yaml"},
		{line: "create quota q --hard=pods=2,cpu=1 --scopes=BestEffort --dry-run=client -o yaml"},
		{line: "create pdb p --selector=app=web --max-unavailable=50% --dry-run=client -o yaml"},
		{line: "create priorityclass p --value=10 --description=x --dry-run=client -o yaml"},
		{line: "create ingress i --class=c '--rule=example.com/bar=web:8080,tls=my' '--rule=example.com/x*=web:http' --default-backend=d:80 --annotation a=b --dry-run=client -o yaml"},

		{line: "create -f two.yaml --save-config", effect: []string{"configmaps/one", "configmaps/two"}},
		{line: "create configmap c --from-literal=a=1 --save-config -o yaml", differs: &difference{[]string{"stdout"}, "the annotation has the fields in kubectl's type's order, in anyctl's it has them sorted"}},
		{line: "create configmap c --from-literal=a='<1>' --from-file=app.env --append-hash -o yaml"},
		{line: "create secret generic s --from-literal=a=b --append-hash -o name"},
		{line: "create secret docker-registry s --docker-username=u --docker-password=p --append-hash --dry-run=client -o name"},
		{line: "create -f two.yaml --edit -l app=web", env: []string{"KUBE_EDITOR=sed -i s/blue/green/"}, effect: []string{"configmaps/one"}, differs: &difference{[]string{"stderr"}, "kubectl drops the selector with --edit, and opens an editor for each object"}},
		{line: "create -f one.yaml --edit", env: []string{"KUBE_EDITOR=sed -i s/blue/green/"}, effect: []string{"configmaps/one"}},
		{line: "create -f one.yaml --edit", env: []string{"KUBE_EDITOR=true"}, effect: []string{"configmaps/one"}},
		{line: "create --raw /api/v1/namespaces/$NS/configmaps -f raw.json", effect: []string{"configmaps/raw"}},

		{line: "create", fails: true},
		{line: "create --raw /api/v1/namespaces/$NS/configmaps -f raw.json -f raw.json", fails: true},
		{line: "create --raw /api/v1/namespaces/$NS/configmaps -f raw.json --edit", fails: true},
		{line: "create --raw /api/v1/namespaces/$NS/configmaps -f raw.json -o name", fails: true},
		{line: "create --raw nonsense -f raw.json", fails: true},
		{line: "create --raw /api/v1/namespaces/$NS/nonsense -f raw.json", fails: true},
		{line: "create -f missing.yaml", fails: true},
		{line: "create -f half.yaml", fails: true, effect: []string{"cm/first", "cm/third"}, differs: &difference{[]string{"stderr"}, whatWasDone}},
		{line: "create -f unknown.yaml", fails: true, effect: []string{"cm/behind"}, differs: &difference{[]string{"stderr"}, whatWasDone + ", and " + whereItIs}},
		{line: "create -f strict.yaml", fails: true},
		{line: "create -f two.yaml --validate=maybe", fails: true},
		{line: "create -f other.yaml -n $NS", fails: true},
		{line: "create deployment web", fails: true},
		{line: "create deployment web --image=a --image=b -- run", fails: true},
		{line: "create service clusterip web --tcp=none", fails: true},
		{line: "create configmap c --from-file=none", fails: true},
		{line: "create pdb p --selector=app=web", fails: true},
		{line: "create cm one", setup: twoConfigMaps, fails: true},
		{line: "create -f two.yaml --context limited -n $NS", fails: true, differs: &difference{[]string{"stderr"}, whatWasDone}},
		{line: "create sa robot --context limited -n $NS", fails: true},
	}
	for i := range cases {
		cases[i].files = files
	}
	return cases
}

// statusMasks hide the status and the fields of controllers.
func statusMasks() []mask {
	return []mask{{`(?s)\nstatus:.*`, "\nSTATUS\n"}, {`(?m)^.*(deployment.kubernetes.io/revision|generation|controller-uid|batch.kubernetes.io).*\n`, ""}, {`(?m)^  annotations:\n`, ""}}
}

func applyCases() []oracleCase {
	const crd = `
apiVersion: v1
kind: ConfigMap
metadata: {name: before}
---
apiVersion: oracle.example.com/v1
kind: Widget
metadata: {name: applied}
spec: {size: 3}
`
	files := map[string]string{
		"two.yaml": twoConfigMaps, "half.yaml": halfWrong, "broken.yaml": brokenYAML, "widget.yaml": crd,
		"generate.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x-}\n",
		"conflict.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {color: green}\n",
		"conflicts.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {color: green, shape: round, size: '7'}\n",
	}
	// Both managers own shape.
	const colorAndShape = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {color: blue, shape: flat}\n"
	const shapeAndSize = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {shape: flat, size: '3'}\n"
	cases := []oracleCase{
		{line: "apply --server-side -f two.yaml", effect: []string{"cm/one", "cm/two"}},
		{line: "apply --server-side -f -", stdin: twoConfigMaps},
		{line: "apply --server-side -f widget.yaml", effect: []string{"widgets/applied"}},
		{line: "apply --server-side -f two.yaml -l app=db", effect: []string{"cm/one", "cm/two"}},
		{line: "apply --server-side -f two.yaml --dry-run=server -o name", effect: []string{"cm/one"}},
		{line: "apply --server-side -f conflict.yaml --force-conflicts --field-manager=other", setup: twoConfigMaps, effect: []string{"cm/one"}},

		{line: "apply --server-side -f conflict.yaml --field-manager=other", setup: twoConfigMaps, fails: true, effect: []string{"cm/one"}},
		{line: "apply --server-side -f conflicts.yaml --field-manager=other", setup: colorAndShape, fails: true, effect: []string{"cm/one"}},
		{line: "apply --server-side -f conflicts.yaml --field-manager=third", setup: colorAndShape, otherSetup: shapeAndSize, fails: true, effect: []string{"cm/one"}},
		{line: "apply --server-side -f half.yaml", fails: true, effect: []string{"cm/first", "cm/third"}, differs: &difference{[]string{"stderr"}, whatWasDone}},
		{line: "apply --server-side -f broken.yaml", fails: true, effect: []string{"cm/first"}, differs: &difference{[]string{"stderr"}, whatWasDone + ", and " + whereItIs}},
		{line: "apply --server-side -f generate.yaml", fails: true},
		{line: "apply --server-side -f two.yaml --dry-run=client", fails: true},
		{line: "apply --server-side -f conflict.yaml --context limited -n $NS", fails: true},
		{line: "apply --server-side", fails: true},
		{line: "apply --server-side -f empty", fails: true},
	}
	for i := range cases {
		cases[i].files = files
	}
	return cases
}

func deleteCases() []oracleCase {
	files := map[string]string{"two.yaml": twoConfigMaps}
	cases := []oracleCase{
		{line: "delete cm one", setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}},
		{line: "delete cm/one cm/two", setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}},
		{line: "delete cm one missing two", setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}, fails: true, differs: &difference{[]string{"stderr"}, whatWasDone}},
		{line: "delete -f two.yaml", setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}},
		{line: "delete cm -l app=web", setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}},
		{line: "delete cm --field-selector metadata.name=two -o name", setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}},
		{line: "delete cm -l app=none"},
		{line: "delete cm missing --ignore-not-found"},
		{line: "delete cm one --dry-run=server", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "delete cm one --dry-run=client", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "delete deploy web --cascade=orphan", setup: webDeployment, ready: []string{"deploy/web"}},
		{line: "delete deploy web --cascade=foreground --grace-period=1", setup: webDeployment, ready: []string{"deploy/web"}, effect: []string{"deploy/web", "rs"}},
		{line: "delete pods --all --now", setup: "apiVersion: v1\nkind: Pod\nmetadata: {name: solo}\nspec: {containers: [{name: a, image: b}]}\n", ready: []string{"pod/solo"}, effect: []string{"pods"}},
		{line: "delete pods solo --force", setup: "apiVersion: v1\nkind: Pod\nmetadata: {name: solo}\nspec: {containers: [{name: a, image: b}]}\n", ready: []string{"pod/solo"}, effect: []string{"pods"}},
		{line: "delete cm held --wait=false", setup: heldConfigMap},
		{line: "delete cm one two -i", setup: twoConfigMaps, stdin: "y\n", effect: []string{"cm/one", "cm/two"}},
		{line: "delete cm one -i", setup: twoConfigMaps, stdin: "n\n", effect: []string{"cm/one"}},

		{line: "delete --raw /api/v1/namespaces/$NS/configmaps/one", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "delete --raw /api/v1/namespaces/$NS/configmaps/missing", fails: true},
		{line: "delete --raw nonsense", fails: true},
		{line: "delete --raw /api -i", fails: true},
		{line: "delete cm held --timeout=1s", setup: heldConfigMap, fails: true, differs: &difference{[]string{"stderr"}, whyNot}},
		{line: "delete cm missing", fails: true},
		{line: "delete cm one --context limited -n $NS", setup: twoConfigMaps, fails: true, effect: []string{"cm/one"}},
		{line: "delete cm one --server=https://127.0.0.1:1", fails: true, masks: []mask{{`(?m)^E\d{4}.*\n`, ""}}},
		{line: "delete cm one -A", setup: twoConfigMaps, fails: true, effect: []string{"cm/one"}},
		{line: "delete cm", fails: true},
		{line: "delete cm one --all", fails: true},
		{line: "delete cm --all -l app=web", fails: true},
		{line: "delete cm one --now --grace-period=3", fails: true},
		{line: "delete cm one --force --grace-period=3", fails: true},
		{line: "delete cm one -o yaml", fails: true, differs: &difference{[]string{"stderr"}, "anyctl has the formats of get, and says that there is no such object"}},
		{line: "delete cm one --cascade=maybe", fails: true},
	}
	for i := range cases {
		cases[i].files = files
	}
	return cases
}

func editCases() []oracleCase {
	editor := func(script string) []string { return []string{"KUBE_EDITOR=" + script} }
	return []oracleCase{
		{line: "edit cm one", setup: twoConfigMaps, env: editor("sed -i s/blue/green/"), effect: []string{"cm/one"}},
		{line: "edit cm one two", setup: twoConfigMaps, env: editor("sed -i s/blue/green/"), effect: []string{"cm/one", "cm/two"}, differs: &difference{[]string{"stdout"}, "kubectl edits several objects as one List, anyctl as documents, and reports those without a change"}},
		{line: "edit cm one -o json", setup: twoConfigMaps, env: editor("sed -i s/blue/green/"), effect: []string{"cm/one"}},
		{line: "edit cm one", setup: twoConfigMaps, env: editor("true"), effect: []string{"cm/one"}},
		{line: "edit cm one", setup: twoConfigMaps, env: editor("truncate -s 0"), effect: []string{"cm/one"}, fails: true, differs: &difference{[]string{"stderr", "code"}, "the file says that an empty one aborts the edit, and so it does in anyctl; kubectl takes it for an invalid object"}},
		{line: "edit cm missing", fails: true},
		{line: "edit cm one", setup: twoConfigMaps, env: editor("false"), fails: true, masks: editFiles(), differs: &difference{[]string{"stderr"}, "anyctl keeps the file, and has the editor's exit code"}},
		{line: "edit cm one", setup: twoConfigMaps, env: editor("sed -i 's/color: .*/color: 3/'"), fails: true, masks: editFiles(), effect: []string{"cm/one"}, differs: &difference{[]string{"stderr"}, "the server's text of the rejected object is cut"}},
		{line: "edit cm one -o table", setup: twoConfigMaps, fails: true},
	}
}

// editFiles hides the names of temporary files.
func editFiles() []mask { return []mask{{`"/[^"]*edit-\d+\.yaml"`, `"FILE"`}} }

func patchCases() []oracleCase {
	files := map[string]string{"patch.yaml": "data:\n  color: green\n"}
	cases := []oracleCase{
		{line: `patch cm one -p '{"data":{"color":"green"}}'`, setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: `patch cm/one cm/two --type=merge -p 'data: {size: big}'`, setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}},
		{line: `patch cm one -p '{"data":{"color":"blue"}}'`, setup: twoConfigMaps},
		{line: "patch cm one --patch-file patch.yaml -o yaml", setup: twoConfigMaps},
		{line: `patch cm one --type=json -p '[{"op":"remove","path":"/data/color"}]' --dry-run=server`, setup: twoConfigMaps, effect: []string{"cm/one"}, differs: &difference{[]string{"stdout"}, dryRunLine}},
		{line: `patch deploy web --subresource=scale --type=merge -p '{"spec":{"replicas":1}}'`, setup: webDeployment, ready: []string{"deploy/web"}},
		{line: `patch deploy web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"example.com/web:2"}]}}}}' -o jsonpath='{.spec.template.spec.containers[*].image}'`, setup: webDeployment},

		{line: `patch -f - --local --type=merge -p '{"data":{"color":null,"size":"big"}}' -o yaml`, stdin: webConfigMap},
		{line: `patch -f - --local --type=json -p '[{"op":"replace","path":"/data/color","value":"green"}]' -o name`, stdin: webConfigMap},
		{line: `patch -f - --local --type=merge -p '{"data":{"color":"blue"}}'`, stdin: webConfigMap},
		{line: `patch cm one --dry-run=client --type=merge -p '{"data":{"color":"green"}}'`, setup: twoConfigMaps, effect: []string{"cm/one"}, differs: &difference{[]string{"stdout"}, dryRunLine}},
		{line: `patch -f - --local -p '{"data":{"color":"green"}}' -o name`, stdin: webConfigMap},
		{line: `patch -f - --local --type=json -p '[{"op":"remove","path":"/data/none"}]'`, stdin: webConfigMap, fails: true},
		{line: "patch -f - --local --dry-run=server --type=merge -p '{}'", stdin: webConfigMap, fails: true},
		{line: "patch cm one", setup: twoConfigMaps, fails: true},
		{line: "patch cm one -p '{' ", setup: twoConfigMaps, fails: true, differs: &difference{[]string{"stderr"}, "another parser of YAML"}},
		{line: "patch cm one --type=other -p '{}'", fails: true},
		{line: `patch cm one -p '{"data":{"color":"green"}}' --context limited -n $NS`, setup: twoConfigMaps, fails: true, effect: []string{"cm/one"}},
		{line: "patch cm missing -p '{}'", fails: true},
		{line: `patch deploy web -p '{"spec":{"replicas":-1}}'`, setup: webDeployment, fails: true},
		{line: `patch widgets small -p '{"spec":{"size":2}}'`, setup: oneWidget, fails: true},
	}
	for i := range cases {
		cases[i].files = files
	}
	return cases
}

const oneWidget = `
apiVersion: oracle.example.com/v1
kind: Widget
metadata: {name: small}
spec: {size: 1, replicas: 1}
`

func metadataCases() []oracleCase {
	return []oracleCase{
		{line: "label cm one tier=front", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "label cm one two tier=front --overwrite", setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}},
		{line: "label cm one app- tier=front", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "label cm two tier- none-", setup: twoConfigMaps, effect: []string{"cm/two"}},
		{line: "label cm one app=web", setup: twoConfigMaps},
		{line: "label cm -l app=db tier=x --overwrite -o name", setup: twoConfigMaps, effect: []string{"cm/one", "cm/two"}},
		{line: "label cm one --list", setup: twoConfigMaps},
		{line: "label cm one two --list", setup: twoConfigMaps, unordered: true},
		{line: "label cm one tier=x --dry-run=server", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "label -f - new=x --local -o yaml", stdin: twoConfigMaps, differs: &difference{[]string{"stdout"}, "anyctl separates the YAML documents, kubectl does not"}},
		{line: "label cm two tier=x", setup: twoConfigMaps, fails: true},
		{line: "label cm one tier=x --resource-version=1", setup: twoConfigMaps, fails: true},
		{line: "label cm one 'a=b c'", setup: twoConfigMaps, fails: true},
		{line: "label cm one", setup: twoConfigMaps, fails: true},
		{line: "label tier=x", fails: true},
		{line: "label cm tier=x", setup: twoConfigMaps, fails: true},
		{line: "label cm one a=b a-", fails: true},

		{line: "annotate cm one 'note=two words'", setup: twoConfigMaps, effect: []string{"cm/one"}},
		{line: "annotate cm two note=second --overwrite", setup: twoConfigMaps, effect: []string{"cm/two"}},
		{line: "annotate cm two note-", setup: twoConfigMaps, effect: []string{"cm/two"}},
		{line: "annotate cm -l app=db --list", setup: twoConfigMaps},
		{line: "annotate cm two note=second", setup: twoConfigMaps, fails: true},
		{line: "annotate cm missing note=x", fails: true},
		{line: "annotate cm one", setup: twoConfigMaps, fails: true},
	}
}

func scaleCases() []oracleCase {
	return []oracleCase{
		{line: "scale deploy/web --replicas=3", setup: webDeployment, ready: []string{"deploy/web"}},
		{line: "scale deploy web --replicas=1 --current-replicas=2 --timeout=4m", setup: webDeployment, ready: []string{"deploy/web"}},
		{line: "scale deploy -l app=web --replicas=0 -o name", setup: webDeployment, ready: []string{"deploy/web"}},
		{line: "scale widgets small --replicas=4", setup: oneWidget, effect: []string{"widgets/small"}},
		{line: "scale deploy/web --replicas=3 --dry-run=server", setup: webDeployment, ready: []string{"deploy/web"}, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "scale deploy/web --replicas=3 --current-replicas=5", setup: webDeployment, fails: true},
		{line: "scale deploy/web", fails: true},
		{line: "scale deploy/web --replicas=-1", fails: true},
		{line: "scale deploy/web --replicas=3 --context limited -n $NS", setup: webDeployment, fails: true},
		{line: "scale deploy/missing --replicas=1", fails: true},
		{line: "scale cm/one --replicas=1", setup: twoConfigMaps, fails: true, differs: &difference{[]string{"stderr"}, "anyctl knows from discovery that there is no scale, and says which subresources there are"}},
	}
}

func waitCases() []oracleCase {
	return []oracleCase{
		{line: "wait --for=condition=Available deploy/web --timeout=4m", setup: webDeployment},
		{line: "wait --for=condition=available=true deploy -l app=web --timeout=4m", setup: webDeployment},
		{line: "wait --for=jsonpath='{.status.readyReplicas}'=2 deploy/web --timeout=4m", setup: webDeployment},
		{line: "wait --for=jsonpath=.data.color cm --all --field-selector metadata.name!=kube-root-ca.crt", setup: twoConfigMaps},
		{line: "wait --for=create cm/one --for=jsonpath={.data.color}=blue", setup: twoConfigMaps},
		{line: "wait --for=delete cm/missing"},
		{line: "wait --for=delete cm/one --timeout=0", setup: twoConfigMaps, fails: true},
		{line: "wait --for=condition=Ready pod -l app=web --timeout=4m -o name", setup: webDeployment, ready: []string{"deploy/web"}, unordered: true},

		{line: "wait --for=condition=Never deploy/web --timeout=2s", setup: webDeployment, fails: true, differs: &difference{[]string{"stderr"}, whyNot}},
		{line: "wait --for=condition=Never deploy/web --timeout=0", setup: webDeployment, fails: true},
		{line: "wait --for=delete cm/held --timeout=2s", setup: heldConfigMap, fails: true, differs: &difference{[]string{"stderr"}, whyNot}},
		{line: "wait --for=create cm/missing --timeout=2s", fails: true, differs: &difference{[]string{"stderr"}, whyNot}},
		{line: "wait --for=jsonpath={.data.color}=red cm/one cm/two --timeout=2s", setup: twoConfigMaps, fails: true, differs: &difference{[]string{"stdout", "stderr"}, "at the time-out anyctl checks the objects that follow, kubectl reports a time-out for each"}},
		{line: "wait --for=delete cm/one cm/two --timeout=2s", setup: twoConfigMaps, fails: true, differs: &difference{[]string{"stderr"}, whyNot}},
		{line: "wait --for=condition=Ready pod/missing", fails: true},
		{line: "wait --for=condition=Ready pod -l app=none", fails: true},
		{line: "wait --for=other deploy/web", fails: true},
		{line: "wait deploy/web", fails: true},
		{line: "wait --for=jsonpath='{.a}'= cm/one", fails: true},
		{line: "wait --for=jsonpath='{.a'=b cm/one", fails: true},
	}
}

func rolloutCases() []oracleCase {
	const sets = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "example.com/db:1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "example.com/agent:1"}]}
`
	ready := []string{"deploy/web"}
	waiting := []mask{{`(?m)^Waiting for .*\n`, ""}}
	return []oracleCase{
		{line: "rollout status deploy/web --timeout=4m", setup: webDeployment, masks: waiting},
		{line: "rollout status deploy web --revision=1", setup: webDeployment, ready: ready},
		{line: "rollout status deploy", setup: webDeployment, ready: ready},
		{line: "rollout status sts/db", setup: sets, ready: []string{"sts/db"}},
		{line: "rollout status ds/agent", setup: sets, ready: []string{"ds/agent"}},
		{line: "rollout status deploy/web --watch=false", setup: webDeployment, ready: ready},
		{line: "rollout history deploy/web", setup: webDeployment, ready: ready},
		{line: "rollout history ds/agent", setup: sets, ready: []string{"ds/agent"}},
		{line: "rollout history sts db", setup: sets, ready: []string{"sts/db"}},
		{line: "rollout history deploy/web --revision=1", setup: webDeployment, ready: ready, differs: &difference{[]string{"stdout"}, podTemplates}},
		{line: "rollout restart deploy/web", setup: webDeployment, ready: ready, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "rollout restart ds/agent sts/db", setup: sets, ready: []string{"ds/agent"}},
		{line: "rollout pause deploy/web", setup: webDeployment, ready: ready, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "rollout resume deploy/web", setup: pausedDeployment(), effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "rollout undo deploy/web --to-revision=1", setup: webDeployment, ready: ready},

		{line: "rollout undo deploy/web", setup: webDeployment, ready: ready, fails: true},
		{line: "rollout undo deploy web --to-revision=1", setup: strings.Replace(webDeployment, "labels: {app: web}}", `annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}`, 1), ready: ready},
		{line: "rollout undo ds/agent", setup: sets, ready: []string{"ds/agent"}, fails: true},
		{line: "rollout undo deploy/web --to-revision=7", setup: webDeployment, ready: ready, fails: true},
		{line: "rollout history deploy/web --revision=7", setup: webDeployment, ready: ready, fails: true},
		{line: "rollout status deploy/web --revision=7", setup: webDeployment, ready: ready, fails: true},
		{line: "rollout status cm/one", setup: twoConfigMaps, fails: true, differs: &difference{[]string{"stderr"}, "anyctl adds what to use instead"}},
		{line: "rollout status deploy/missing", fails: true},
		{line: "rollout status", fails: true},
		{line: "rollout pause deploy/web", setup: pausedDeployment(), fails: true},
		{line: "rollout resume deploy/web", setup: webDeployment, fails: true},
		{line: "rollout restart cm/one", setup: twoConfigMaps, fails: true},
		{line: "rollout restart deploy/web", setup: pausedDeployment(), fails: true},
	}
}

func pausedDeployment() string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  paused: true
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`
}
