package planscenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/plan"
)

// All returns the scenarios.
func All() []Scenario {
	return slices.Concat(plainScenarios(), kindScenarios(), immutableScenarios(), rejectedScenarios(), conflictScenarios(), setScenarios(), podScenarios(), namespaceScenarios(), definitionScenarios())
}

const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: red, size: big}}\n---\n"

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1", ports: [{containerPort: 80}]}]}
---
`

const service = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}\n---\n"

const statefulSet = `
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
`

const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: once, image: "example.com/once:1"}]}
---
`

const role = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: reader}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}, subjects: [{kind: ServiceAccount, name: default, namespace: NAMESPACE}]}
---
`

const volumeClaim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}\n---\n"

// paths returns a check of the changed fields of the first change. Controllers may change the status during the plan.
func paths(want ...string) func(*testing.T, *plan.Plan) {
	return func(t *testing.T, planned *plan.Plan) {
		t.Helper()
		var got []string
		for _, field := range planned.Changes[0].Fields {
			if !strings.HasPrefix(field.Path, ".status.") {
				got = append(got, field.Path)
			}
		}
		assert.Equal(t, want, got)
	}
}

// replaced returns text with pairs of texts replaced.
func replaced(text string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(text)
}

func plainScenarios() []Scenario {
	return []Scenario{
		{Name: "create", Objects: configMap, Want: []string{"create ConfigMap a"}},
		{Name: "unchanged", Setup: configMap, Objects: configMap, Want: []string{"unchanged ConfigMap a"}},
		{
			Name: "changed value", Setup: configMap, Objects: replaced(configMap, "red", "blue"),
			Want: []string{"configure ConfigMap a"}, Check: paths(".data.color"),
		},
		{
			Name: "removed value", Setup: configMap, Objects: replaced(configMap, "color: red, ", ""),
			Want: []string{"configure ConfigMap a"}, Check: paths(".data.color"),
		},
		{
			Name: "label and annotation", Setup: configMap, Objects: replaced(configMap, "name: a", "name: a, labels: {tier: front}, annotations: {note: text}"),
			Want: []string{"configure ConfigMap a"}, Check: paths(".metadata.annotations", ".metadata.labels"),
		},
		{Name: "defaulted fields", Objects: deployment + service, Want: []string{"create Service web", "create Deployment web"}},
		{Name: "unchanged defaults", Setup: deployment + service, Objects: deployment + service, Want: []string{"unchanged Service web", "unchanged Deployment web"}},
		{
			Name: "image", Setup: deployment, Objects: replaced(deployment, "web:1", "web:2"), Want: []string{"configure Deployment web"},
			Check: paths(`.spec.template.spec.containers[name="web"].image`),
		},
		{
			Name: "added container", Setup: deployment, Objects: replaced(deployment, "containers: [", "containers: [{name: side, image: 'example.com/side:1'}, "),
			Want: []string{"configure Deployment web"},
		},
		{
			Name: "removed replicas", Setup: deployment, Objects: replaced(deployment, "  replicas: 2\n", ""),
			Want: []string{"configure Deployment web"}, Check: paths(".spec.replicas"),
		},
		{
			Name: "container port", Setup: deployment, Objects: replaced(deployment, "containerPort: 80", "containerPort: 81"),
			Want: []string{"configure Deployment web"},
			Check: paths(`.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]`,
				`.spec.template.spec.containers[name="web"].ports[containerPort=81,protocol="TCP"]`),
		},
		{Name: "service port", Setup: service, Objects: replaced(service, "port: 80", "port: 81"), Want: []string{"configure Service web"}},
		{Name: "headless service", Objects: replaced(service, "spec: {", "spec: {clusterIP: None, "), Want: []string{"create Service web"}},
		{Name: "stateful set", Objects: statefulSet, Want: []string{"create StatefulSet db"}},
		{Name: "job", Objects: job, Want: []string{"create Job once"}},
		{Name: "role and binding", Objects: role, Want: []string{"create Role reader", "create RoleBinding reader"}},
		{Name: "role rule", Setup: role, Objects: replaced(role, "[get]", "[get, list]"), Want: []string{"configure Role reader", "unchanged RoleBinding reader"}},
		{Name: "secret data", Objects: "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: secret}}", Want: []string{"create Secret s"}},
		{
			Name: "secret value", Setup: "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {password: b25l}}",
			Objects: "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {password: dHdv}}", Want: []string{"configure Secret s"},
			Check: func(t *testing.T, planned *plan.Plan) {
				t.Helper()
				text := describe(planned)
				assert.NotContains(t, text, "b25l")
				assert.NotContains(t, text, "dHdv")
				assert.Contains(t, text, "3 bytes, before")
			},
		},
	}
}

// kindScenarios have further kinds, finalizers and quotas.
func kindScenarios() []Scenario {
	return []Scenario{
		{Name: "volume claim", Objects: volumeClaim, Want: []string{"create PersistentVolumeClaim data"}},
		{Name: "finalizer", Objects: replaced(configMap, "name: a", "name: a, finalizers: [example.com/x]") + "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}", Want: []string{"create ConfigMap a", "create ConfigMap b"}},
		{Name: "cluster role", Objects: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}, rules: []}", Want: []string{"create ClusterRole NAMESPACE"}},
		{Name: "priority class", Objects: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NAMESPACE}, value: 7}", Want: []string{"create PriorityClass NAMESPACE"}},
		{Name: "namespace of an object", Objects: "{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: NAMESPACE}}", Want: []string{"create ConfigMap d"}},
		{Name: "network policy", Objects: "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny}, spec: {podSelector: {}}}", Want: []string{"create NetworkPolicy deny"}},
		{Name: "cron job", Objects: replaced("{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {schedule: '0 * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}"), Want: []string{"create CronJob c"}},
		{Name: "ingress", Objects: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}", Want: []string{"create Ingress i"}},
		{Name: "disruption budget", Objects: "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: p}, spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}}", Want: []string{"create PodDisruptionBudget p"}},
		{Name: "autoscaler", Objects: "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}", Want: []string{"create HorizontalPodAutoscaler h"}},
		{
			Name: "quota", Setup: "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {configmaps: '100'}}}",
			Objects: configMap + replaced(configMap, "name: a", "name: b"), Want: []string{"create ConfigMap a", "create ConfigMap b"},
			Check: func(t *testing.T, planned *plan.Plan) {
				t.Helper()
				if assert.Len(t, planned.NotValidated, 1) {
					assert.Contains(t, planned.NotValidated[0], "for 2 new objects together")
				}
			},
		},
	}
}

func immutableScenarios() []Scenario {
	immutable := replaced(configMap, ", data:", ", immutable: true, data:")
	return []Scenario{
		{Name: "deployment selector", Setup: deployment, Objects: replaced(deployment, "app: web", "app: new"), Want: []string{"replace Deployment web"}},
		{Name: "job template", Setup: job, Objects: replaced(job, "once:1", "once:2"), Want: []string{"replace Job once"}},
		{Name: "stateful set service", Setup: statefulSet, Objects: replaced(statefulSet, "serviceName: db", "serviceName: x"), Want: []string{"replace StatefulSet db"}},
		{Name: "immutable config map", Setup: immutable, Objects: replaced(immutable, "red", "blue"), Want: []string{"replace ConfigMap a"}},
		{Name: "secret type", Setup: "{apiVersion: v1, kind: Secret, metadata: {name: s}, type: example.com/a}", Objects: "{apiVersion: v1, kind: Secret, metadata: {name: s}, type: example.com/b}", Want: []string{"replace Secret s"}},
		{Name: "role reference", Setup: role, Objects: replaced(role, "kind: Role, name: reader}, subjects", "kind: ClusterRole, name: view}, subjects"), Want: []string{"unchanged Role reader", "replace RoleBinding reader"}},
		{
			Name: "priority value", Setup: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NAMESPACE}, value: 7}",
			Objects: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NAMESPACE}, value: 8}", Want: []string{"replace PriorityClass NAMESPACE"},
		},
		{
			Name: "storage provisioner", Setup: "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAMESPACE}, provisioner: a}",
			Objects: "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAMESPACE}, provisioner: b}", Want: []string{"replace StorageClass NAMESPACE"},
		},
		{Name: "stateful set replicas", Setup: statefulSet, Objects: replaced(statefulSet, "serviceName: db", "serviceName: db\n  replicas: 3"), Want: []string{"configure StatefulSet db"}},
	}
}

func rejectedScenarios() []Scenario {
	return []Scenario{
		{Name: "invalid name", Objects: replaced(configMap, "name: a", "name: A_") + replaced(configMap, "name: a", "name: b"), Want: []string{"rejected ConfigMap A_", "create ConfigMap b"}},
		{Name: "unknown field", Objects: replaced(configMap, ", data:", ", dota: {}, data:"), Want: []string{"rejected ConfigMap a"}},
		{Name: "invalid value", Setup: deployment, Objects: replaced(deployment, "replicas: 2", "replicas: -1"), Want: []string{"rejected Deployment web"}},
		{Name: "invalid port", Objects: replaced(service, "port: 80", "port: 80000"), Want: []string{"rejected Service web"}},
		{Name: "unknown kind", Objects: "{apiVersion: none.example.com/v1, kind: Tree, metadata: {name: t}}", Want: []string{"rejected Tree t"}},
		{Name: "missing namespace", Objects: "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: missing}}", Want: []string{"rejected ConfigMap m"}},
		{Name: "quota exceeded", Setup: "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {services: '0'}}, status: {hard: {services: '0'}, used: {services: '0'}}}", Objects: replaced(configMap, "name: a", "name: A_"), Want: []string{"rejected ConfigMap A_"}},
		{Name: "selector without labels", Objects: replaced(deployment, "labels: {app: web}", "labels: {app: x}"), Want: []string{"rejected Deployment web"}},
		{Name: "duplicate ports", Objects: replaced(service, "[{port: 80}]", "[{name: a, port: 80}, {name: b, port: 80}]"), Want: []string{"rejected Service web"}},
	}
}

func conflictScenarios() []Scenario {
	blue := replaced(configMap, "red", "blue")
	return []Scenario{
		{
			Name: "conflict", Others: configMap, Objects: blue, Want: []string{"rejected ConfigMap a"},
			Check: func(t *testing.T, planned *plan.Plan) {
				t.Helper()
				change := planned.Changes[0]
				if assert.Len(t, change.Conflicts, 1) {
					assert.Equal(t, ".data.color", change.Conflicts[0].Field)
					assert.Equal(t, "others", change.Conflicts[0].Manager)
				}
				assert.Len(t, change.Fields, 1, "the forced outcome")
			},
		},
		{
			Name: "forced conflict", Others: configMap, Objects: blue, Force: true, Want: []string{"configure ConfigMap a"},
			Check: func(t *testing.T, planned *plan.Plan) {
				t.Helper()
				assert.Len(t, planned.Changes[0].Conflicts, 1)
				if assert.Len(t, planned.Changes[0].Fields, 1) {
					assert.Equal(t, []string{"others"}, planned.Changes[0].Fields[0].Managers)
				}
			},
		},
		{Name: "shared value", Others: configMap, Objects: configMap, Want: []string{"configure ConfigMap a"}, Check: paths()},
		{Name: "disjoint fields", Others: replaced(configMap, "color: red, ", ""), Objects: replaced(configMap, ", size: big", ""), Want: []string{"configure ConfigMap a"}, Check: paths(".data.color")},
		{
			Name: "left field of others", Setup: configMap, Others: configMap, Objects: replaced(configMap, "color: red, ", ""),
			Want: []string{"configure ConfigMap a"}, Check: paths(),
		},
		{Name: "conflict of replicas", Setup: deployment, Others: replaced(deployment, "replicas: 2", "replicas: 5"), Objects: deployment, Want: []string{"rejected Deployment web"}},
		{Name: "forced replicas", Setup: deployment, Others: replaced(deployment, "replicas: 2", "replicas: 5"), Objects: deployment, Force: true, Want: []string{"configure Deployment web"}, Check: paths(".spec.replicas")},
	}
}

func setScenarios() []Scenario {
	two := configMap + replaced(configMap, "name: a", "name: b")
	return []Scenario{
		{Name: "set create", IsSet: true, Objects: two, Want: []string{"create ConfigMap a", "create ConfigMap b"}},
		{Name: "set prune", IsSet: true, Setup: two, Objects: configMap, Want: []string{"unchanged ConfigMap a", "prune ConfigMap b"}},
		{Name: "set configure and prune", IsSet: true, Setup: two, Objects: replaced(configMap, "red", "blue"), Want: []string{"configure ConfigMap a", "prune ConfigMap b"}},
		{Name: "set secret", IsSet: true, Setup: configMap, Objects: configMap + "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {x: text}}", Want: []string{"unchanged ConfigMap a", "create Secret s"}},
		{
			Name: "set prune finalizer", IsSet: true, Setup: configMap + replaced(service, "name: web", "name: web, finalizers: [example.com/x]"), Objects: configMap,
			Want: []string{"unchanged ConfigMap a", "prune Service web"},
			Check: func(t *testing.T, planned *plan.Plan) {
				t.Helper()
				assert.Contains(t, planned.Changes[1].Reason, "example.com/x")
			},
		},
		{Name: "set replace", IsSet: true, Setup: job, Objects: replaced(job, "once:1", "once:2"), Want: []string{"replace Job once"}},
	}
}

const newNamespace = "{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-new}}\n---\n"

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: p, image: "example.com/p:1"}]}
---
`

const (
	serviceAccount = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner}}\n---\n"
	priorityClass  = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NAMESPACE}, value: 7}\n---\n"
	limits         = "{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1}}]}}\n---\n"
)

// podScenarios have pods whose admission depends on objects of the plan.
func podScenarios() []Scenario {
	runner := replaced(pod, "spec: {", "spec: {serviceAccountName: runner, ")
	return []Scenario{
		{Name: "pod and its service account", NeedsCopy: true, Objects: serviceAccount + runner, Want: []string{"create ServiceAccount runner", "create Pod p"}},
		{Name: "pod of a service account", Setup: serviceAccount, Objects: runner, Want: []string{"create Pod p"}},
		{
			Name: "pod and its priority class", NeedsCopy: true, Setup: serviceAccount, Objects: priorityClass + replaced(runner, "spec: {", "spec: {priorityClassName: NAMESPACE, "),
			Want: []string{"create PriorityClass NAMESPACE", "create Pod p"},
		},
		{Name: "pod and limits", NeedsCopy: true, Setup: serviceAccount, Objects: runner + limits, Want: []string{"create LimitRange l", "create Pod p"}},
		{Name: "pod below limits", Setup: serviceAccount + limits, Objects: runner, Want: []string{"create Pod p"}},
		{Name: "pod image", Setup: serviceAccount + runner, Objects: replaced(runner, "p:1", "p:2"), Want: []string{"configure Pod p"}},
		{Name: "pod node selector", Setup: serviceAccount + runner, Objects: replaced(runner, "spec: {", "spec: {nodeSelector: {a: b}, "), Want: []string{"replace Pod p"}},
	}
}

func namespaceScenarios() []Scenario {
	in := func(text string, name string) string {
		return replaced(text, "name: "+name+"}", "name: "+name+", namespace: NAMESPACE-new}")
	}
	return []Scenario{
		{Name: "namespace alone", Objects: newNamespace, Want: []string{"create Namespace NAMESPACE-new"}},
		{Name: "namespace and object", NeedsCopy: true, Objects: newNamespace + in(configMap, "a"), Want: []string{"create Namespace NAMESPACE-new", "create ConfigMap a"}},
		{Name: "namespace and workload", NeedsCopy: true, Objects: in(deployment, "web") + in(service, "web") + newNamespace, Want: []string{"create Namespace NAMESPACE-new", "create Service web", "create Deployment web"}},
		{Name: "namespace and secret", NeedsCopy: true, Objects: newNamespace + "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NAMESPACE-new}, data: {x: b25l}}", Want: []string{"create Namespace NAMESPACE-new", "create Secret s"}},
		{Name: "namespace and stateful set", NeedsCopy: true, Objects: newNamespace + in(statefulSet, "db"), Want: []string{"create Namespace NAMESPACE-new", "create StatefulSet db"}},
		{Name: "namespace and rejected object", NeedsCopy: true, Objects: newNamespace + in(replaced(service, "port: 80", "port: 80000"), "web"), Want: []string{"create Namespace NAMESPACE-new", "rejected Service web"}},
		{Name: "namespace and both", NeedsCopy: true, Setup: configMap, Objects: newNamespace + configMap + in(replaced(configMap, "name: a", "name: b"), "b"), Want: []string{"create Namespace NAMESPACE-new", "unchanged ConfigMap a", "create ConfigMap b"}},
		{Name: "namespace of a set", NeedsCopy: true, IsSet: true, Setup: configMap, Objects: newNamespace + in(configMap, "a"), Want: []string{"create Namespace NAMESPACE-new", "create ConfigMap a", "prune ConfigMap a"}},
		{
			Name: "namespace with limits", NeedsCopy: true, Objects: newNamespace + "{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: NAMESPACE-new}, spec: {limits: [{type: Container, default: {cpu: 1}}]}}", Want: []string{"create Namespace NAMESPACE-new", "create LimitRange l"},
			Check: func(t *testing.T, planned *plan.Plan) {
				t.Helper()
				assert.Equal(t, []string{"spec"}, planned.Changes[1].NotValidated, "the copy's API server does not validate it")
			},
		},
	}
}

// definition returns a CustomResourceDefinition of kind Widget with the schema of its spec.
func definition(spec string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: ` + spec + `}}}
---
`
}

const widget = "{apiVersion: GROUP/v1, kind: Widget, metadata: {name: w}, spec: {size: 3}}\n---\n"

func definitionScenarios() []Scenario {
	plain := definition("{type: object, properties: {size: {type: integer}}}")
	defaulted := definition("{type: object, properties: {size: {type: integer}, color: {type: string, default: red}}}")
	limited := definition("{type: object, properties: {size: {type: integer, maximum: 2}}}")
	items := definition("{type: object, properties: {size: {type: integer}, items: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, value: {type: integer}}}}}}")
	return []Scenario{
		{Name: "definition alone", Objects: plain, Want: []string{"create CustomResourceDefinition widgets.NAMESPACE.example.com"}},
		{Name: "definition and object", NeedsCopy: true, Objects: plain + widget, Want: []string{"create CustomResourceDefinition widgets.NAMESPACE.example.com", "create Widget w"}},
		{Name: "definition with default", NeedsCopy: true, Objects: defaulted + widget, Want: []string{"create CustomResourceDefinition widgets.NAMESPACE.example.com", "create Widget w"}},
		{Name: "definition rejects object", NeedsCopy: true, Objects: limited + widget, Want: []string{"create CustomResourceDefinition widgets.NAMESPACE.example.com", "rejected Widget w"}},
		{Name: "definition namespace object", NeedsCopy: true, Objects: newNamespace + plain + replaced(widget, "name: w", "name: w, namespace: NAMESPACE-new"), Want: []string{"create Namespace NAMESPACE-new", "create CustomResourceDefinition widgets.NAMESPACE.example.com", "create Widget w"}},
		{Name: "existing definition", Setup: plain, Objects: plain + widget, Want: []string{"unchanged CustomResourceDefinition widgets.NAMESPACE.example.com", "create Widget w"}},
		{Name: "custom resource changed", Setup: plain + widget, Objects: replaced(widget, "size: 3", "size: 4"), Want: []string{"configure Widget w"}, Check: paths(".spec.size")},
		{Name: "custom resource unchanged", Setup: plain + widget, Objects: plain + widget, Want: []string{"unchanged CustomResourceDefinition widgets.NAMESPACE.example.com", "unchanged Widget w"}},
		{Name: "upgraded definition with default", NeedsCopy: true, Setup: plain + widget, Objects: defaulted + widget, Want: []string{"configure CustomResourceDefinition widgets.NAMESPACE.example.com", "configure Widget w"}},
		{Name: "upgraded definition new field", NeedsCopy: true, Setup: plain + widget, Objects: items + replaced(widget, "size: 3", "size: 3, items: [{name: a, value: 1}]"), Want: []string{"configure CustomResourceDefinition widgets.NAMESPACE.example.com", "configure Widget w"}},
		{Name: "upgraded definition rejects", NeedsCopy: true, Setup: plain, Objects: limited + widget, Want: []string{"configure CustomResourceDefinition widgets.NAMESPACE.example.com", "rejected Widget w"}},
		{Name: "upgraded definition unchanged object", NeedsCopy: true, Setup: plain + widget, Objects: items + widget, Want: []string{"configure CustomResourceDefinition widgets.NAMESPACE.example.com", "unchanged Widget w"}},
		{Name: "list items", Setup: items + replaced(widget, "size: 3", "items: [{name: a, value: 1}, {name: b}]"), Objects: replaced(widget, "size: 3", "items: [{name: a, value: 2}, {name: b}]"), Want: []string{"configure Widget w"}, Check: paths(`.spec.items[name="a"].value`)},
		{Name: "invalid definition", Objects: replaced(plain, "plural: widgets", "plural: gadgets"), Want: []string{"rejected CustomResourceDefinition widgets.NAMESPACE.example.com"}},
		{Name: "invalid custom resource", Setup: plain, Objects: replaced(widget, "size: 3", "size: big"), Want: []string{"rejected Widget w"}},
		{Name: "definition of a set", NeedsCopy: true, IsSet: true, Setup: configMap, Objects: plain + widget + configMap, Want: []string{"create CustomResourceDefinition widgets.NAMESPACE.example.com", "create Widget w", "unchanged ConfigMap a"}},
		{Name: "immutable scope", Setup: plain, Objects: replaced(plain, "scope: Namespaced", "scope: Cluster"), Want: []string{"rejected CustomResourceDefinition widgets.NAMESPACE.example.com"}},
	}
}
