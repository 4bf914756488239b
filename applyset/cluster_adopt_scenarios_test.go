package applyset_test

import "strings"

// definitions are Clock, with versions of equal schemas, and Gear, with lists of all types.
const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clocks.NAMESPACE.example.com}
spec:
  group: NAMESPACE.example.com
  scope: Namespaced
  names: {plural: clocks, singular: clock, kind: Clock, listKind: ClockList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.NAMESPACE.example.com}
spec:
  group: NAMESPACE.example.com
  scope: Namespaced
  names: {plural: gears, singular: gear, kind: Gear, listKind: GearList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
          spec:
            type: object
            properties:
              atomic: {type: array, items: {type: string}}
              set: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              map:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, port]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, port: {type: integer, default: 80}, teeth: {type: integer}}
              struct: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: string}}}
`

const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings%}, data: {keep: a, color: before}}"

const settingsAfter = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {app: a}}, data: {keep: b, new: c}}"

// configMap returns the ConfigMap settings with further metadata.
func configMap(metadata string) string { return strings.Replace(settings, "%", metadata, 1) }

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web, team: a}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {note: a}}
    spec:
      terminationGracePeriodSeconds: 70
      initContainers: [{name: init, image: init}]
      containers:
      - name: web
        image: web:1
        args: [a, b]
        env: [{name: A, value: before}, {name: B, value: b}]
        ports: [{containerPort: 80, name: http}, {containerPort: 81}]
        resources: {limits: {cpu: "1", memory: 1Gi}}
        volumeMounts: [{name: scratch, mountPath: /scratch}]
      - name: sidecar
        image: sidecar
      volumes: [{name: scratch, emptyDir: {}}]
`

const webAfter = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:2
        env: [{name: B, value: b}, {name: C, value: c}]
        ports: [{containerPort: 80, name: http}]
        resources: {limits: {memory: 2Gi}}
`

const autoscalerV1 = `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {minReplicas: 2, maxReplicas: 5, targetCPUUtilizationPercentage: 70, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
`

const autoscalerV2 = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  maxReplicas: 6
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}]
`

// scenarios returns the moves from kubectl. group is the group of definitions.
func scenarios(group string) []scenario {
	apply := func(manifest string) step { return step{"apply -f -", manifest} }
	clock := func(version, spec string) string {
		return "{apiVersion: " + group + "/" + version + ", kind: Clock, metadata: {name: clock}, spec: " + spec + "}"
	}
	gear := func(spec string) string {
		return "{apiVersion: " + group + "/v1, kind: Gear, metadata: {name: gear}, spec: " + spec + "}"
	}
	all := []scenario{
		{name: "a key and a value", kubectl: []step{apply(configMap(""))}, manifest: settingsAfter},
		{name: "labels and annotations", kubectl: []step{apply(configMap(", labels: {app: x, team: x}, annotations: {note: x}"))}, manifest: settingsAfter},
		{name: "finalizers", kubectl: []step{apply(configMap(", finalizers: [example.com/a]"))}, manifest: settingsAfter},
		{name: "all keys", kubectl: []step{apply(configMap(""))}, manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"},
		{name: "create", kubectl: []step{{"create -f -", configMap("")}}, manifest: settingsAfter},
		{name: "create, then apply", kubectl: []step{{"create -f -", configMap("")}, apply(configMap(", labels: {team: x}"))}, manifest: settingsAfter},
		{name: "create with --save-config, then replace", kubectl: []step{{"create --save-config -f -", configMap("")}, {"replace -f -", configMap(", labels: {team: x}")}}, manifest: settingsAfter},
		{name: "edit", kubectl: []step{apply(configMap("")), {"edit configmap settings", ""}}, manifest: settingsAfter},
		{name: "patch", kubectl: []step{apply(configMap("")), {`patch configmap settings --type=merge -p {"data":{"patched":"x"}}`, ""}}, manifest: settingsAfter},
		{name: "label and annotate", kubectl: []step{apply(configMap("")), {"label configmap settings app=x team=x", ""}, {"annotate configmap settings note=x", ""}}, manifest: settingsAfter},
		{name: "a command without a manifest", kubectl: []step{{"create configmap settings --from-literal=color=red", ""}}, manifest: settingsAfter},
		{name: "stringData of a Secret", kubectl: []step{apply("{apiVersion: v1, kind: Secret, metadata: {name: password}, stringData: {a: a, b: b}}")}, manifest: "{apiVersion: v1, kind: Secret, metadata: {name: password}, stringData: {b: c}}"},
		{
			name:     "ports of a Service",
			kubectl:  []step{apply("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, selector: {app: web, team: a}, ports: [{name: a, port: 80}, {name: b, port: 81}]}}")},
			manifest: "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, selector: {app: web}, ports: [{name: a, port: 80, targetPort: http}]}}",
		},
		{name: "containers, env, ports, volumes and replicas of a Deployment", kubectl: []step{apply(web)}, manifest: webAfter},
		{
			name: "set image, set env, set resources, scale and rollout restart",
			kubectl: []step{
				apply(web), {"set image deployment web web=web:3", ""}, {"set env deployment web A=x D=d", ""},
				{"set resources deployment web --limits=cpu=2", ""}, {"scale deployment web --replicas=7", ""}, {"rollout restart deployment web", ""},
			},
			manifest: webAfter,
		},
		{name: "scale, then a manifest with replicas", kubectl: []step{apply(web), {"scale deployment web --replicas=7", ""}}, manifest: strings.Replace(webAfter, "spec:", "spec:\n  replicas: 2", 1)},
		{
			name:    "replicas of an autoscaler stay",
			kubectl: []step{apply(web)},
			others:  []step{{`patch deployment web --subresource=scale --field-manager=autoscaler --type=merge -p {"spec":{"replicas":9}}`, ""}},
			later:   []step{{"set image deployment web web=web:3", ""}}, manifest: webAfter,
			owners: []string{"autoscaler Update apps/v1 scale"},
		},
		{
			name:     "the status stays",
			kubectl:  []step{apply(ingress(", labels: {app: x}"))},
			others:   []step{{`patch ingress web --subresource=status --type=merge -p {"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}}`, ""}},
			manifest: ingress(""),
		},
		{
			name:     "fields of a different manager stay",
			kubectl:  []step{apply(configMap(", labels: {app: x}"))},
			others:   []step{{`patch configmap settings --field-manager=other --type=merge -p {"data":{"other":"x"},"metadata":{"labels":{"other":"x"},"finalizers":["example.com/a"]}}`, ""}},
			later:    []step{{"label configmap settings team=x", ""}},
			manifest: settingsAfter,
		},
		{
			name:     "a field that a different manager applies with the same value stays",
			kubectl:  []step{apply(configMap(""))},
			others:   []step{{applyAs + "controller", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: before}}"}},
			manifest: settingsAfter,
		},
		{
			name:     "containers of a different manager stay",
			kubectl:  []step{apply(web)},
			others:   []step{{applyAs + "controller", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: injected, image: proxy}]}}}}`}},
			later:    []step{{"set env deployment web --containers=web A=x", ""}},
			manifest: webAfter,
		},
		{name: "server-side apply", kubectl: []step{{"apply --server-side -f -", configMap(", labels: {team: x}")}}, manifest: settingsAfter},
		{name: "client-side, then server-side apply", kubectl: []step{apply(configMap(", labels: {team: x}")), {"apply --server-side -f -", configMap("")}}, manifest: settingsAfter},
		{name: "server-side, then client-side apply and edit", kubectl: []step{{"apply --server-side -f -", configMap("")}, apply(configMap(", labels: {team: x}")), {"edit configmap settings", ""}}, manifest: settingsAfter},
		{name: "autoscaling/v1 to v2", kubectl: []step{apply(autoscalerV1)}, manifest: autoscalerV2},
		{
			name:     "autoscaling/v2 to v1",
			kubectl:  []step{apply("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, labels: {team: a}}, spec: {minReplicas: 2, maxReplicas: 6, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}")},
			manifest: "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}",
		},
		{
			name:     "autoscaling/v1, edited in v2",
			kubectl:  []step{apply(autoscalerV1), {`patch horizontalpodautoscalers.v2.autoscaling web --type=merge -p {"spec":{"minReplicas":3,"behavior":{"scaleDown":{"stabilizationWindowSeconds":30}}}}`, ""}},
			manifest: autoscalerV2,
			reason:   `"kubectl-client-side-apply" keeps .spec.targetCPUUtilizationPercentage of version autoscaling/v1`,
		},
		{name: "a custom resource in an older version", kubectl: []step{apply(clock("v1beta1", "{hours: 12, alarm: {at: 7}, hands: [a, b]}"))}, manifest: clock("v1", "{hours: 24}")},
		{
			name:     "a custom resource in two versions",
			kubectl:  []step{apply(clock("v1beta1", "{hours: 12, alarm: {at: 7, on: true}}")), apply(clock("v1", "{hours: 12, alarm: {at: 8, on: true}, zone: utc}"))},
			manifest: clock("v1", "{hours: 24, alarm: {at: 8}}"),
		},
		{
			name:     "a custom resource in two versions, applied in the older",
			kubectl:  []step{apply(clock("v1beta1", "{hours: 12, alarm: {at: 7, on: true}}")), apply(clock("v1", "{hours: 12, alarm: {at: 8, on: true}, zone: utc}"))},
			manifest: clock("v1beta1", "{hours: 24, alarm: {at: 8}}"),
		},
		{
			name:     "lists of a custom resource",
			kubectl:  []step{apply(gear("{atomic: [a, b], set: [a, b], map: [{name: a, teeth: 1}, {name: a, port: 81, teeth: 2}], struct: {a: a, b: b}}")), {"patch gears." + group + ` gear --type=json -p [{"op":"add","path":"/spec/set/-","value":"c"}]`, ""}},
			manifest: gear("{atomic: [b], set: [b], map: [{name: a, port: 81}], struct: {b: b}}"),
		},
		{
			name:     "status and items of a controller stay",
			kubectl:  []step{apply(gear("{set: [a, b], map: [{name: a}, {name: b}]}"))},
			others:   []step{{applyAs + "controller", gear("{set: [x], map: [{name: x, teeth: 1}]}")}, {"patch gears." + group + ` gear --subresource=status --field-manager=controller --type=merge -p {"status":{"turns":1}}`, ""}},
			manifest: gear("{set: [a], map: [{name: a}]}"),
		},
	}
	return all
}

// ingress is an object whose status no controller of the sandbox writes.
func ingress(labels string) string {
	return `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web` + labels + `}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
`
}
