package oracle

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/client"
)

// anyctlCases are lines without a counterpart in kubectl, with patterns of their output.
var anyctlCases = []struct {
	line, want string
	fails      bool
}{
	{"get cm,svc --one-table", `^NAME +DATA +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE\n(configmap/\S+ +\d+ +\S+ *\n)+service/web +ClusterIP`, false},
	{"get cm,svc --where '.metadata.labels.app == \"web\"' -o name", `^configmap/settings\nservice/web\n$`, false},
	{"get cm --where '.data.color == \"red\"'", `^NAME +DATA +AGE\nother +1 +\S+\n$`, false},
	{"get cm settings -o 'jq=.data.color'", `^blue\n$`, false},
	{"get cm -o 'jq=[., inputs] | length'", `^\d\n$`, false},
	{"get svc web -o yaml --neat", `^apiVersion: v1\nkind: Service\nmetadata:\n  labels:\n    app: web\n  name: web\n  namespace: \S+\nspec:\n  ports:\n`, false},
	{"get cm --color=always", "^\x1b\\[1mNAME\x1b\\[0m +\x1b\\[1mDATA\x1b\\[0m", false},
	{"config view --flatten --minify -o jsonpath={.clusters[0].name}", `^sandbox$`, false},
	{"get cm --where '['", `error: parse jq "\["`, true},
	{"get cnfigmaps", `error: the server doesn't have a resource type "cnfigmaps"\nDid you mean configmaps`, true},
	{"get cm --outptu=json", `error: unknown flag: --outptu\nSee 'anyctl get --help' for usage.`, true},
	{"gte cm", `error: unknown command "gte" for "anyctl"\n\nDid you mean this\?\n\tget\n`, true},
	{"tpo pods", `^error: unknown command "tpo" for "anyctl"\n\nDid you mean this\?\n\ttop\n`, true},
	{"convert -f x --overwrite", `^error: unknown command "convert" for "anyctl"\n$`, true},
	{"list cm -A", `error: unknown command "list" for "anyctl"\n\nDid you mean this\?\n\tget\n`, true},
	{"get cm --server=https://127.0.0.1:1", `The connection to the server 127.0.0.1:1 was refused`, true},
	{"get cm other -v=6", `^NAME +DATA +AGE\nother +1 +\S+\n(GET https://\S+ 200 OK in \S+\n)*GET https://[^?\s]+/configmaps/other 200 OK in \S+\n$`, false},
	{"new deploy shop", `^apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: shop\n(.*\n)*  selector:\n    matchLabels:\n      app: shop\n`, false},
	{"new wd", `^apiVersion: oracle\.example\.com/v1\nkind: Widget\nmetadata:\n  name: example\n`, false},
	{"new", `error: must specify a resource type`, true},
	{"set svc/web spec.externalName=5 --dry-run=client -o jsonpath={.spec.externalName}", `^5$`, false},
	{"set svc/web spec.ipFamilyPolicee=a", `no field "ipFamilyPolicee": did you mean ipFamilyPolicy\?`, true},
	{"set svc/web spec.healthCheckNodePort=many", `spec.healthCheckNodePort: "many": the value is an integer`, true},
	{"__complete set svc/web spec.sessionAffinity=", `^spec.sessionAffinity=ClientIP\nspec.sessionAffinity=None\n`, false},
	{"__complete set svc web spec.sessionA", `^spec.sessionAffinity=\tstring\nspec.sessionAffinityConfig.\tobject\n`, false},
	{"__complete get svc --where .spec.type==", `^\.spec\.type=="ClusterIP"\n\.spec\.type=="ExternalName"\n`, false},
	{"__complete get wd --sort-by .spec.si", `^\.spec\.size\tinteger\n`, false},
	{"__complete get svc -o custom-columns=TYPE:.spec.ty", `^custom-columns=TYPE:\.spec\.type\tstring\n`, false},
	{"__complete create priorityclass x --preemption-policy=", `^Never\nPreemptLowerPriority\n`, false},
	{"__complete create quota x --scopes Term", `^Terminating\n`, false},
	{"__complete create cronjob x --restart N", `^Never\n`, false},
	{"__complete create role x --resource widg", `^widgets\n:`, false},
	{"__complete create rolebinding x --clusterrole vie", `^view\n`, false},
	{"__complete create cm x --dry-run=", `^client\nnone\nserver\n`, false},
	{"__complete scale ''", `(?m)^deployments\nreplicasets\nreplicationcontrollers\nstatefulsets\nwidgets\n:`, false},
	{"__complete rollout undo ''", `^daemonsets\ndeployments\nstatefulsets\n:`, false},
	{"__complete rollout pause ''", `^deployments\n:`, false},
	{"__complete set subject ''", `^clusterrolebindings\nrolebindings\n:`, false},
	{"__complete delete ev", `^events\nevents.events.k8s.io\n:`, false},
	{"__complete delete componentst", `^:`, false},
	{"__complete exec solo -c ''", `^main\nside\n:`, false},
	{"__complete logs pod/solo -c s", `^side\n:`, false},
	{"__complete set image deploy web ''", `^web=\n:6\n`, false},
	{"__complete set image deploy/web ''", `^web=\n:6\n`, false},
	{"__complete cp sol", `^solo:\n:6\n`, false},
	{"__complete cp $NS/so", `^\S+/solo:\n:6\n`, false},
	{"__complete cp solo:/e", `^:4\n`, false},
	{"__complete cp solo:/etc/hosts ''", `^:0\n`, false},
	{"__complete cp ./fi", `^:0\n`, false},
	{"__complete cp ./file sol", `^solo:\n:6\n`, false},
	{"__complete new widget", `^widgets\n:`, false},
	{"events --for deploy/web --owned --no-headers", `(?s)Normal +ScalingReplicaSet +Deployment/web .*Normal +SuccessfulCreate +ReplicaSet/web-|(?s)ReplicaSet/web-.*Deployment/web `, false},
	{"events --for deploy/web --owned --types=Warning", `^No events found in \S+ namespace\.\n$`, false},
	{"role --name reader -- get cm settings -o name", `(?s)^apiVersion: rbac\.authorization\.k8s\.io/v1\nkind: Role\nmetadata:\n  name: reader\n  namespace: \S+\nrules:\n- apiGroups:\n  - ""\n  resourceNames:\n  - settings\n  resources:\n  - configmaps\n  verbs:\n  - get\nconfigmap/settings\n$`, false},
	{"role --all-names -o name -- label cm settings role=x --dry-run=server", `^role\.rbac\.authorization\.k8s\.io/anyctl\nconfigmap/settings labeled \(server dry run\)\n$`, false},
	{"role --cluster -o json -- get cm,svc -l app=web", `(?s)^\{\n    "apiVersion": "rbac.*"kind": "ClusterRole".*"configmaps",\n +"services"`, false},
	{"role -- get cm none", `(?s)kind: Role.*Warning: the command failed.*Error from server \(NotFound\): configmaps "none" not found\n$`, true},
	{"role --program --name reader -- kubectl get cm settings -o name", `(?s)^apiVersion: rbac\.authorization\.k8s\.io/v1\nkind: Role\nmetadata:\n  name: reader\n  namespace: \S+\nrules:\n- apiGroups:\n  - ""\n  resourceNames:\n  - settings\n  resources:\n  - configmaps\n  verbs:\n  - get\nconfigmap/settings\n$`, false},
	{"role --program --all-names -- kubectl exec solo -- echo hello", `(?s)pods/exec\n.*- create\n  - get\n.*hello\n$`, false},
	{"role --program -- sh -c 'kubectl get svc web -o name; exit 3'", `(?s)kind: Role.*  - services\n.*service/web\nWarning: the command failed`, true},
	{"role --program -- no-such-program", `executable file not found`, true},
	{"config use-context token -o jsonpath={.current-context}", `^tokenSwitched to context "token"\.\n$`, false},
	{"config set-cluster new --server=https://x.example.com -o json", `(?s)^\{.*"server": "https://x\.example\.com".*\}\nCluster "new" set\.\n$`, false},
	{"config set-credentials new --token=hidden -o yaml", `(?s)^apiVersion: v1\n.*    token: REDACTED\n.*User "new" set\.\n$`, false},
	{"config delete-context missing -o yaml", `^error: cannot delete context missing, not in \S+\n$`, true},
	{"drain node-1 --ignore-daemonsets --force --delete-emptydir-data --dry-run=client -o name", `(?m)^node/node-1$`, false},
	{"drain node-1 --pod-selector app=none --dry-run=client -o jsonpath={.kind}/{.metadata.name}", `^Node/node-1$`, false},
	{"role -- api-versions", `No roles are needed: `, false},
	{"role get cm", `^error: a command is required after --: role -- get pods\n`, true},
	{"role -- role -- get cm", `^error: role cannot record itself\n$`, true},
	{"role -- nonsense", `^error: unknown command "nonsense" for "anyctl"\n$`, true},
	{"events --owned", `^error: --owned needs --for, the owner\n$`, true},
	{"events --for deploy/none --owned", `^Error from server \(NotFound\): deployments\.apps "none" not found\n$`, true},
	{"explain pods.spec.containerz", `error: field "containerz" does not exist\nDid you mean containers`, true},
	{"explain pods.spec.containers.ports --details", `^KIND: +Pod\nVERSION: +v1\n\nFIELD: ports <\[\]ContainerPort>\nDETAILS:\n    x-kubernetes-list-map-keys: containerPort, protocol\n`, false},
	{"explain wd.spec.size -o json", `"name": "size",\n    "type": "integer",\n    "constraints": {\n        "minimum": 0\n    }\n}\n$`, false},
	{"explain wd.spec -o markdown", "^# Widget\\.spec\n\n`Object` of `oracle\\.example\\.com/v1`\n\n\\| field", false},
	{"explain pods --max-depth=1", `error: --max-depth requires --recursive\n`, true},
	{"explain endpoints -o json", `^Warning: v1 Endpoints is deprecated in v1\.33\+; use discovery\.k8s\.io/v1 EndpointSlice\n$|"deprecated": "v1 Endpoints is deprecated in v1\.33\+; use discovery\.k8s\.io/v1 EndpointSlice"`, false},
	{"__complete explain pods.spec.nodeN", `^pods.spec.nodeName\tstring\n`, false},
	{"__complete explain deployments.apps.spec.strat", `^deployments.apps.spec.strategy\tDeploymentStrategy\n`, false},
	{"__complete explain widget", `^widgets\n:`, false},
	{"apply -f x --prune", `error: --prune needs --applyset, the set to prune\n`, true},
	{"apply -f x --wait", `error: --wait needs --applyset \(run afterwards: anyctl wait --for=ready -f …\)\n`, true},
	{"apply -f x --prune --applyset=set -n n --field-manager=me", `error: --field-manager is incompatible with --applyset: a set has its own field manager\n`, true},
	{"delete --applyset=set -n n --all", `error: --all is incompatible with --applyset\n`, true},
	{"delete --applyset=set -n n pods", `error: --applyset is incompatible with resource arguments: all objects of the set are deleted\n`, true},
	{"apply -f x --timeout=1s", `error: --timeout needs --wait\n`, true},
	{"status", `error: --applyset is required\n`, true},
	{"apply -k .", `error: read kustomization \.: \S*(kubectl|kustomize): unable to find one of 'kustomization.yaml'`, true},
	{"get cm --request-timeout=1ns", `request timed out after 1ns`, true},
}

func TestAnyctl_OwnLines(t *testing.T) {
	o := newOracle(t)
	t.Run("namespace behind its objects", o.namespaceBehindObjects)
	t.Run("lines", func(t *testing.T) {
		for _, c := range anyctlCases {
			t.Run(strings.ReplaceAll(c.line, "/", ":"), func(t *testing.T) {
				t.Parallel()
				r := o.anyctl.run(t, &oracleCase{line: c.line}, o.fixtures, o.kubectl)
				assert.Equal(t, c.fails, r.code != 0, r.stderr)
				assert.Regexp(t, c.want, r.stdout+r.stderr)
			})
		}
	})
	t.Run("debug -o", o.debugOutput)
	t.Run("watch several kinds", o.watchSeveralKinds)
	t.Run("watch only with events", o.watchOnly)
	t.Run("closed pipe", o.closedPipe)
}

// namespaceBehindObjects applies a file in which a namespace follows its object. The output is that of kubectl for the objects in
// the right order; kubectl reports the object of the wrong order as an error.
func (o *oracle) namespaceBehindObjects(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: $NS-new}\n"
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS-new}\n"
	files := map[string]string{"right.yaml": namespace + "---\n" + object, "wrong.yaml": object + "---\n" + namespace}
	apply := func(p *program, file string) result {
		kept := client.NewKeptNamespace(t, o.client)
		r := p.run(t, &oracleCase{line: "apply --server-side -f " + file, files: files}, kept, o.kubectl)
		r.stdout = strings.ReplaceAll(r.stdout, kept, "NAMESPACE")
		return r
	}
	right := apply(o.kubectl, "right.yaml")
	require.Zero(t, right.code, right.stderr)
	assert.Contains(t, apply(o.kubectl, "wrong.yaml").stderr, "not found")
	for file := range files {
		assert.Equal(t, right, apply(o.anyctl, file), file)
	}
}

func (o *oracle) watchSeveralKinds(t *testing.T) {
	r := o.anyctl.run(t, &oracleCase{line: "get cm/settings svc/web -w", during: []step{
		{"service/web", ""}, {"", "label cm settings seen=yes --overwrite"}, {"\nconfigmap/settings", "annotate svc web seen=yes --overwrite"}, {"\nservice/web", ""},
	}}, o.fixtures, o.kubectl)
	assert.Equal(t, 1, r.code, "the code of kubectl get -w after an interrupt; %s", r.stderr)
	assert.Equal(t, 1, strings.Count(r.stdout, "NAME "), "one header:\n%s", r.stdout)
	assert.GreaterOrEqual(t, strings.Count(r.stdout, "\n"), 5, "%s", r.stdout)
}

// watchOnly changes an object until its watch prints a change: --watch-only prints nothing at its begin.
func (o *oracle) watchOnly(t *testing.T) {
	cmd := o.anyctl.command(t.Context(), t, &oracleCase{line: "get cm settings --watch-only --output-watch-events --show-labels"}, o.fixtures)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	printed := make(chan string)
	go func() {
		lines := bufio.NewScanner(stdout)
		lines.Scan()
		lines.Scan()
		printed <- lines.Text()
	}()
	for turn := 1; ; turn++ {
		o.kubectl.simple(t, fmt.Sprintf("label cm settings turn=%d --overwrite", turn), o.fixtures)
		select {
		case line := <-printed:
			assert.Regexp(t, `^MODIFIED +settings +2 +\S+ +.*turn=`, line)
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			return
		default:
		}
	}
}

func (o *oracle) closedPipe(t *testing.T) {
	cmd := o.anyctl.command(t.Context(), t, &oracleCase{line: "get clusterroles -o yaml --show-managed-fields"}, o.fixtures)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, stdout.Close())
	_ = cmd.Wait()
	assert.Empty(t, stderr.String(), "the end is quiet")
}
