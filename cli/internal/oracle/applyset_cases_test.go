package oracle

import "strings"

// setStep is a line of a setCase for kubectl or anyctl, with the files of the run.
type setStep struct {
	// line is the command line without the program. $APPLY is apply of the set of the case with --server-side and --prune.
	line string
	// files are written to the program's folder: name and content in turn.
	files []string
	// before is a line of kubectl in the namespace of the run, before the step.
	before string
	fails  bool
	// differs explains the results without a comparison.
	differs *difference
}

// setCase is a series of lines with one set. kubectl and anyctl have a namespace each.
type setCase struct {
	name string
	// parent is the value of --applyset: "set" by default.
	parent string
	// hasRecord creates the parent Record $NS-set, which is cluster-scoped, and the namespace $NS-more.
	hasRecord bool
	steps     []setStep
}

const (
	setOne  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {color: blue}\n"
	setRed  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {color: red, shape: round}\n"
	setMore = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: $NS-more}\ndata: {color: blue}\n"
	setTwo  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n"

	setSecret  = "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\ndata: {password: c2VjcmV0}\n"
	setService = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}\n"
	setAccount = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n"
	setRole    = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: web}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"
	setBinding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: $NS-web}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n"
	setJob     = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\nspec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.com/a}]}}}\n"
	setScaled  = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'example.com/web:2'}]}}}\n"
	setGadget  = "apiVersion: oracle.example.com/v1\nkind: Gadget\nmetadata: {name: applied}\nspec: {size: 3}\n"
	setUnknown = "apiVersion: none.example.com/v1\nkind: Tree\nmetadata: {name: a}\n"
	setInvalid = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Second_}\n"
	setLabeled = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: labeled, labels: {applyset.kubernetes.io/part-of: other}}\n"
)

func docs(texts ...string) string { return strings.Join(texts, "---\n") }

func applied(texts ...string) setStep {
	return setStep{line: "$APPLY -f set.yaml", files: []string{"set.yaml", docs(texts...)}}
}

func applySetCases() []setCase {
	with := func(step setStep, change func(*setStep)) setStep {
		change(&step)
		return step
	}
	line := func(line string, texts ...string) setStep {
		return with(applied(texts...), func(s *setStep) { s.line = line })
	}
	before := func(before string, texts ...string) setStep {
		return with(applied(texts...), func(s *setStep) { s.before = before })
	}
	failing := func(why string, step setStep) setStep {
		step.fails = true
		if why != "" {
			step.differs = &difference{[]string{"stdout", "stderr"}, why}
		}
		return step
	}
	return []setCase{
		{name: "one object", steps: []setStep{applied(setOne)}},
		{name: "unchanged", steps: []setStep{applied(setOne, setTwo), applied(setOne, setTwo)}},
		{name: "changed and added field", steps: []setStep{applied(setOne), applied(setRed)}},
		{name: "removed field", steps: []setStep{applied(setRed), applied(setOne)}},
		{name: "pruned object", steps: []setStep{applied(setOne, setTwo), applied(setOne)}},
		{name: "pruned kind", steps: []setStep{applied(setOne, setSecret, setService), applied(setSecret)}},
		{name: "added kind", steps: []setStep{applied(setOne), applied(setOne, setAccount, setRole)}},
		{name: "replaced objects", steps: []setStep{applied(setOne), applied(setTwo), applied(setOne)}},
		{name: "workload", steps: []setStep{applied(webDeployment, setService), applied(setScaled, setService), applied(setService)}},
		{name: "job and roles", steps: []setStep{applied(setJob, setRole, setAccount), applied(setAccount)}},
		{name: "cluster-scoped member", steps: []setStep{applied(setBinding, setOne), applied(setOne)}},
		{name: "custom resource", steps: []setStep{applied(setOne, setGadget), applied(setOne)}},
		{name: "folder", steps: []setStep{{line: "$APPLY -f dir", files: []string{"dir/a.yaml", setOne, "dir/b.yaml", setTwo}}, {line: "$APPLY -f dir", files: []string{"dir/b.yaml", setTwo}}}},
		{name: "stdin", steps: []setStep{line("$APPLY -f - -o name", setOne), line("$APPLY -f - -o name", setTwo)}},
		{name: "output", steps: []setStep{line("$APPLY -f set.yaml -o yaml", setOne), line("$APPLY -f set.yaml -o name", setOne, setTwo)}},
		{name: "dry run", steps: []setStep{applied(setOne, setTwo), line("$APPLY -f set.yaml --dry-run=server", setRed, setSecret), applied(setRed)}},
		{name: "dry run of a new set", steps: []setStep{line("$APPLY -f set.yaml --dry-run=server", setOne)}},
		{name: "config map as parent", parent: "configmaps/set", steps: []setStep{applied(setOne, setTwo), applied(setTwo)}},
		{name: "cluster-scoped parent", parent: "records.oracle.example.com/$NS-set", hasRecord: true, steps: []setStep{
			applied(setOne, setMore), applied(setOne), applied(setMore, setTwo), line("$APPLY -f set.yaml --dry-run=server", setOne),
		}},
		{name: "parent by its short name", parent: "record/$NS-set", hasRecord: true, steps: []setStep{applied(setMore), applied(setOne)}},
		{name: "custom parent that does not exist", parent: "records.oracle.example.com/$NS-set", steps: []setStep{failing("the texts differ", applied(setOne))}},
		{name: "deleted member", steps: []setStep{applied(setOne, setTwo), before("delete cm one", setOne, setTwo)}},
		{name: "deleted and left member", steps: []setStep{applied(setOne, setTwo), before("delete cm two", setOne)}},
		{name: "changed member that left", steps: []setStep{applied(setOne, setTwo), before("annotate cm two by=hand", setOne)}},
		{name: "added field of others stays", steps: []setStep{applied(setOne), before("patch cm one --type=merge -p '{\"data\":{\"mine\":\"1\"}}'", setRed)}},
		{name: "existing object joins", steps: []setStep{before("create cm one --from-literal=other=1", setOne), applied(setTwo)}},
		{name: "foreign objects stay", steps: []setStep{before("create cm foreign", setOne, setTwo), applied(setTwo)}},
		{name: "label removed by hand", steps: []setStep{applied(setOne, setTwo), before("label cm two applyset.kubernetes.io/part-of-", setOne)}},
		{name: "conflict", steps: []setStep{
			applied(setOne), failing("", before("patch cm one --type=merge -p '{\"data\":{\"color\":\"green\"}}'", setRed)), line("$APPLY -f set.yaml --force-conflicts", setRed),
		}},
		{name: "nothing pruned after an error", steps: []setStep{
			applied(setOne, setTwo), failing("kubectl's line of the error has no tally", applied(setRed, setInvalid)), applied(setRed),
		}},

		{name: "unknown kind", steps: []setStep{applied(setOne), failing("kubectl's hint says to install CRDs, anyctl's names document and line", applied(setUnknown))}},
		{name: "label in a manifest", steps: []setStep{with(failing("", applied(setLabeled)), func(s *setStep) {
			s.differs = &difference{[]string{"stderr", "effect"}, "anyctl names the document and the line, and does not create the parent"}
		})}},
		{name: "without --prune", steps: []setStep{failing("", line("apply --server-side --applyset=set -n $NS -f set.yaml", setOne))}},
		{name: "without namespace", steps: []setStep{failing("", line("apply --server-side --prune --applyset=set -f set.yaml", setOne))}},
		{name: "with a selector", steps: []setStep{failing("", line("$APPLY -f set.yaml -l app=web", setOne))}},
		{name: "without objects", steps: []setStep{failing("anyctl says how to delete a set", line("$APPLY -f -"))}},
		{name: "blank name", parent: "secrets/", steps: []setStep{failing("", applied(setOne))}},
		{name: "parent of a kind that is not permitted", parent: "services/set", steps: []setStep{failing("anyctl says what is permitted", applied(setOne))}},
		{name: "parent that is no parent", steps: []setStep{failing("the texts differ", before("create secret generic set", setOne))}},
		{name: "client dry run", steps: []setStep{failing("", line("$APPLY -f set.yaml --dry-run=client", setOne))}},
	}
}

// gadgets is a custom kind and a kind of parents, with an object each: both are served then.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.oracle.example.com}
spec:
  group: oracle.example.com
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: records.oracle.example.com, labels: {applyset.kubernetes.io/is-parent-type: ""}}
spec:
  group: oracle.example.com
  names: {plural: records, singular: record, kind: Record, listKind: RecordList}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: oracle.example.com/v1
kind: Gadget
metadata: {name: other}
---
apiVersion: oracle.example.com/v1
kind: Record
metadata: {name: other}
`

// record is a parent of a set without members, as a user creates it.
const record = `
apiVersion: v1
kind: Namespace
metadata: {name: $NS-more}
---
apiVersion: oracle.example.com/v1
kind: Record
metadata:
  name: $NS-set
  labels: {applyset.kubernetes.io/id: $ID}
  annotations: {applyset.kubernetes.io/tooling: $TOOL/v1, applyset.kubernetes.io/contains-group-kinds: ""}
`
