package oracle

// getCases are the lines of get, events, api-resources, api-versions, version and completion.
func getCases() []oracleCase {
	return []oracleCase{
		{line: "get configmaps", readOnly: true},
		{line: "get cm settings", readOnly: true},
		{line: "get cm settings other", readOnly: true},
		{line: "get cm/settings svc/web deploy/web", readOnly: true},
		{line: "get cm,svc,deploy", readOnly: true},
		{line: "get pods -o wide", readOnly: true, unordered: true, masks: []mask{{`node-\d+ *`, "NODE  "}}},
		{line: "get widgets", readOnly: true},
		{line: "get wd -o wide", readOnly: true},
		{line: "get all", readOnly: true},
		{line: "get widgets.oracle.example.com --sort-by=.spec.size", readOnly: true},
		{line: "get wd --sort-by .spec.owner -o name", readOnly: true},
		{line: "get cm -l app=web", readOnly: true},
		{line: "get cm -l 'app in (web,db)' --show-labels", readOnly: true},
		{line: "get cm -L app,tier --no-headers", readOnly: true},
		{line: "get cm --show-kind", readOnly: true},
		{line: "get cm --field-selector metadata.name=other", readOnly: true},
		{line: "get cm settings -o yaml", readOnly: true},
		{line: "get cm settings other -o yaml", readOnly: true},
		{line: "get deploy web -o json", readOnly: true},
		{line: "get cm,svc -o json", readOnly: true},
		{line: "get cm,svc -o yaml --show-managed-fields", readOnly: true},
		{line: "get cm settings -o kyaml", readOnly: true},
		{line: "get cm,svc -o name", readOnly: true},
		{line: "get cm -l app=nothing", readOnly: true},
		{line: "get cm -l app=nothing -A", readOnly: true},
		{line: "get cm -l app=nothing -o json", readOnly: true},
		{line: "get cm -l app=nothing -o yaml", readOnly: true},
		{line: "get svc web -o jsonpath={.spec.ports[0].port}", readOnly: true},
		{line: `get wd -o jsonpath='{range .items[*]}{.metadata.name}={.spec.size}{"\n"}{end}'`, readOnly: true},
		{line: "get wd -o jsonpath-as-json={.items[*].spec}", readOnly: true},
		{line: "get wd -o jsonpath-file=template", readOnly: true, files: map[string]string{"template": "{.items[*].kind}"}},
		{line: "get wd -o go-template='{{range .items}}{{.metadata.name}} {{.spec.none}};{{end}}'", readOnly: true},
		{line: "get wd --template='{{len .items}}'", readOnly: true},
		{line: `get cm settings -o go-template='{{exists . "data"}} {{exists . "data" "none"}} {{base64decode "aGk="}} {{.data.none}}'`, readOnly: true},
		{line: "get cm settings -o go-template={{.data.none}} --allow-missing-template-keys=false", readOnly: true, fails: true},
		{line: "get cm,svc -o go-template='{{range .items}}{{.kind.none}}{{end}}'", readOnly: true, fails: true},
		{line: "get wd -o custom-columns=NAME:.metadata.name,SIZE:spec.size,NONE:{.spec.none}", readOnly: true},
		{line: "get wd -o custom-columns-file=columns", readOnly: true, files: map[string]string{"columns": "NAME  KIND\nmetadata.name {.kind}\n"}},
		{line: "get namespaces $NS", readOnly: true},
		{line: "get cm settings --ignore-not-found missing", readOnly: true},
		{line: "get cm missing --ignore-not-found", readOnly: true},
		{line: "get cm --chunk-size=1", readOnly: true},
		{line: "get --raw /api/v1/namespaces/$NS/configmaps/other", readOnly: true},
		{line: "get deploy web --subresource=scale", readOnly: true},
		{line: "get deploy web --subresource=status -o jsonpath={.status.replicas}", readOnly: true},
		{line: "get nodes -A --no-headers -o name", readOnly: true},
		{line: "get cm -A -l fixture=settings", readOnly: true},
		{line: "get cm -w -l app=w", setup: watched, during: []step{
			{"watched", "label cm watched more=1"}, {"watched", "delete cm watched"}, {"watched", ""},
		}, fails: true},
		{line: "get cm watched -w -o name", setup: watched, during: []step{{"watched", "label cm watched more=1"}, {"watched", ""}}, fails: true},

		{line: "get -f one.yaml", readOnly: true, files: getFiles},
		{line: "get -f one.yaml -o json", readOnly: true, files: getFiles},
		{line: "get -f two.yaml -o name", readOnly: true, files: getFiles},
		{line: "get -f two.yaml -o yaml", readOnly: true, files: getFiles},
		{line: "get -f - -o json", readOnly: true, stdin: getFiles["one.yaml"]},
		{line: "get -f two.yaml -l app=web --show-labels", readOnly: true, files: getFiles, differs: &difference{
			[]string{"stdout", "stderr"}, "kubectl looks for the labels in the table that the server returns, and finds no object",
		}},
		{line: "get -f none.yaml", readOnly: true, fails: true},
		{line: "get -f one.yaml cm", readOnly: true, files: getFiles, fails: true},

		{line: "get", fails: true},
		{line: "get cm missing", readOnly: true, fails: true},
		{line: "get cm missing settings", readOnly: true, fails: true},
		{line: "get cm/missing svc/none", readOnly: true, fails: true},
		{line: "get cm missing -o json", readOnly: true, fails: true},
		{line: "get cm missing settings -o name", readOnly: true, fails: true},
		{line: "get nonsense", readOnly: true, fails: true},
		{line: "get nonsense/web", readOnly: true, fails: true},
		{line: "get cm -o nonsense", readOnly: true, fails: true, differs: &difference{[]string{"stderr"}, "anyctl has the format jq, too"}},
		{line: "get cm --nonsense", readOnly: true, fails: true},
		{line: "get cm settings -A", readOnly: true, fails: true},
		{line: "get cm settings -l app=web", readOnly: true, fails: true},
		{line: "get cm -o jsonpath", readOnly: true, fails: true},
		{line: "get cm -o custom-columns=NAME", readOnly: true, fails: true},
		{line: "get cm --show-labels -o json", readOnly: true, fails: true},
		{line: "get cm settings -w --request-timeout=2s", readOnly: true},
		{line: "get cm --output-watch-events", readOnly: true, fails: true},
		{line: "get cm --field-selector nonsense=1", readOnly: true, fails: true},
		{line: "get cm --sort-by=.nonsense -n $NS", readOnly: true, differs: &difference{
			[]string{"stderr", "code"}, "kubectl drops the error and says that there are no resources; anyctl reports that no object has the field",
		}},
		{line: "get secrets --context limited", readOnly: true, fails: true},
		{line: "get cm,secrets --context limited -n default", readOnly: true, fails: true},
		{line: "get cm --context missing", readOnly: true, fails: true, differs: &difference{
			[]string{"stderr"}, "anyctl names the file and the contexts that it has",
		}},
		{line: "get cm --server=https://127.0.0.1:1", readOnly: true, fails: true, masks: []mask{{`(?m)^E\d{4}.*\n`, ""}}},
		{line: "get --raw nonsense", readOnly: true, fails: true},
		{line: "get cm settings --warnings-as-errors", readOnly: true},
		{line: "get ep web --warnings-as-errors", readOnly: true, fails: true},
		{line: "get cm settings -v=4", readOnly: true, differs: &difference{[]string{"stderr"}, "kubectl logs lines of its own, anyctl each request from 6 on"}},
		{line: "get cm settings -v=x", readOnly: true, fails: true},
		{line: "nonsense", fails: true},

		{line: "events --for pod/solo", readOnly: true, masks: eventMasks},
		{line: "events --types=Warning", readOnly: true},
		{line: "events --for pod/none --no-headers -A", readOnly: true},
		{line: "events --for solo", readOnly: true, fails: true},
		{line: "events --types=nonsense", readOnly: true, fails: true},

		{line: "api-resources", readOnly: true},
		{line: "api-resources -o wide --api-group=apps", readOnly: true},
		{line: "api-resources -o name --namespaced=false", readOnly: true},
		{line: "api-resources --verbs=list,create --sort-by=kind --no-headers", readOnly: true},
		{line: "api-resources --categories=all -o name", readOnly: true},
		{line: "api-resources --api-group=apps -o json", readOnly: true},
		{line: "api-resources --api-group= --namespaced=false -o yaml", readOnly: true},
		{line: "api-resources --api-group=nonsense", readOnly: true},
		{line: "api-resources pods", readOnly: true, fails: true},
		{line: "api-resources --sort-by=nonsense", readOnly: true, fails: true},
		{line: "api-versions", readOnly: true},
		{line: "api-versions nonsense", readOnly: true, fails: true},
		{line: "version", readOnly: true, differs: &difference{[]string{"stdout"}, "the client's version is anyctl's, which has no kustomize"}},
		{line: "version -o nonsense", readOnly: true, fails: true},
		{line: "version nonsense", readOnly: true, fails: true},

		{line: "completion", readOnly: true, fails: true},
		{line: "completion nonsense", readOnly: true, fails: true},
		{line: "completion bash zsh", readOnly: true, fails: true},
	}
}

const watched = `
apiVersion: v1
kind: ConfigMap
metadata: {name: watched, labels: {app: w}}
`

// eventMasks hide the node of a pod.
var eventMasks = []mask{{`node-\d+`, "NODE"}, {`(?m)^<unknown> *`, "AGE  "}}

var getFiles = map[string]string{
	"one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
	"two.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
}
