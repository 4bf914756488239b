package oracle

// describedObjects are objects of many kinds, with fields that layouts do not mention.
const describedObjects = `
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {pods: "50", services: "11", requests.cpu: "40"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - {type: Container, default: {cpu: 300m, memory: 64Mi}, defaultRequest: {cpu: 20m}, max: {cpu: "2"}, min: {cpu: 10m}}
  - {type: PersistentVolumeClaim, max: {storage: 7Gi}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}, annotations: {note: "two words"}}
data: {color: blue, file.ini: "[a]\nb = c\n"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: binary}
binaryData: {blob: AAECAwQFBgcICQ==}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: not-a-secret}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $NS-disk}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: $NS-fast
  claimRef: {namespace: $NS, name: disk}
  nfs: {server: nfs.example.com, path: /exports}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {accessModes: [ReadWriteOnce], storageClassName: $NS-fast, resources: {requests: {storage: 5Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: $NS-fast}
provisioner: example.com/fast
parameters: {type: ssd, zones: "a,b"}
reclaimPolicy: Retain
volumeBindingMode: Immediate
allowVolumeExpansion: true
mountOptions: [debug]
allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a]}]}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: $NS-high}
value: 1234
description: for what matters
---
apiVersion: v1
kind: Pod
metadata: {name: full, labels: {app: full}, annotations: {team: a}}
spec:
  readinessGates: [{conditionType: example.com/warm}]
  priorityClassName: $NS-high
  nodeSelector: {kubernetes.io/os: linux}
  hostname: full-host
  securityContext: {runAsUser: 1000, fsGroup: 2000, seccompProfile: {type: RuntimeDefault}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: full}}}
  tolerations: [{key: gpu, operator: Equal, value: "yes", effect: NoSchedule}, {operator: Exists}]
  initContainers: [{name: prepare, image: "example.com/prepare:1", command: [prepare, --all]}]
  containers:
  - name: main
    image: example.com/full:1
    command: [serve]
    args: ["--port=8080", "--verbose"]
    ports: [{name: http, containerPort: 8080, hostPort: 18080}, {containerPort: 53, protocol: UDP}]
    resources: {limits: {cpu: 500m, memory: 128Mi}, requests: {cpu: 100m}}
    env:
    - {name: MODE, value: fast}
    - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: TEAM, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['team']"}}}
    - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
    - {name: PASSWORD, valueFrom: {secretKeyRef: {name: password, key: password}}}
    - {name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color, optional: true}}}
    envFrom: [{configMapRef: {name: settings}, prefix: S_}, {secretRef: {name: password, optional: true}}]
    livenessProbe: {httpGet: {path: /live, port: http, httpHeaders: [{name: X-Probe, value: "1"}]}, periodSeconds: 11}
    readinessProbe: {tcpSocket: {port: 8080}, failureThreshold: 7}
    startupProbe: {exec: {command: [check, --now]}, initialDelaySeconds: 2}
    volumeMounts:
    - {name: disk, mountPath: /data, subPath: here}
    - {name: settings, mountPath: /etc/settings, readOnly: true}
  - {name: side, image: "example.com/side:1", securityContext: {readOnlyRootFilesystem: true}}
  volumes:
  - {name: disk, persistentVolumeClaim: {claimName: disk}}
  - {name: settings, configMap: {name: settings, items: [{key: color, path: color.txt}], optional: true}}
  - {name: scratch, emptyDir: {medium: Memory, sizeLimit: 16Mi}}
  - {name: host, hostPath: {path: /var/log, type: Directory}}
  - name: all
    projected: {sources: [{secret: {name: password}}, {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  minReadySeconds: 1
  revisionHistoryLimit: 4
  strategy: {rollingUpdate: {maxSurge: 3, maxUnavailable: 40%}}
  selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: In, values: [front, edge]}]}
  template:
    metadata: {labels: {app: web, tier: front}, annotations: {checksum: abc}}
    spec:
      priorityClassName: $NS-high
      serviceAccountName: default
      topologySpreadConstraints:
      - {maxSkew: 2, topologyKey: host, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      volumes: [{name: scratch, emptyDir: {}}]
      containers:
      - name: web
        image: example.com/web:1
        ports: [{containerPort: 8080, name: http}]
        resources: {limits: {memory: 32Mi}}
        volumeMounts: [{name: scratch, mountPath: /tmp}]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: set}
spec:
  replicas: 2
  selector: {matchLabels: {app: set}}
  template:
    metadata: {labels: {app: set}}
    spec: {containers: [{name: set, image: "example.com/set:1"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 1
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "example.com/db:1", env: [{name: ROLE, value: primary}]}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "example.com/agent:1"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 3
  parallelism: 1
  backoffLimit: 5
  activeDeadlineSeconds: 900
  template:
    metadata: {labels: {app: once}}
    spec: {restartPolicy: Never, containers: [{name: once, image: "example.com/once:1", command: [run]}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "3 4 * * *"
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 77
  suspend: true
  successfulJobsHistoryLimit: 2
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: OnFailure, containers: [{name: nightly, image: "example.com/nightly:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, sessionAffinity: ClientIP, externalIPs: [192.0.2.7], loadBalancerSourceRanges: [192.0.2.0/24], ports: [{name: http, port: 80, targetPort: http}, {name: alt, port: 81, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: missing, port: {number: 8000}}}
  tls: [{hosts: [shop.example.com], secretName: password}]
  rules:
  - host: shop.example.com
    http: {paths: [{path: /cart, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}, {path: /alt, pathType: Exact, backend: {service: {name: web, port: {number: 81}}}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods, pods/log], verbs: [get, list]}, {apiGroups: [apps], resources: [deployments], resourceNames: [web], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ann}, {kind: ServiceAccount, name: default, namespace: $NS}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: $NS-reader}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}, {nonResourceURLs: [/healthz], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $NS-readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: $NS-reader}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: devs}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 6
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 66}}}]
  behavior: {scaleDown: {policies: [{type: Pods, value: 4, periodSeconds: 61}]}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: front}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress, Egress]
  ingress: [{from: [{namespaceSelector: {matchLabels: {team: a}}, podSelector: {matchExpressions: [{key: role, operator: Exists}]}}, {ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.128/25]}}], ports: [{port: 8080, protocol: TCP}]}]
  egress: [{ports: [{port: 32000, endPort: 32768, protocol: TCP}]}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: lock}
spec: {holderIdentity: someone, leaseDurationSeconds: 15}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: manual, labels: {kubernetes.io/service-name: other}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [192.0.2.9], hostname: nine, nodeName: somewhere, zone: a, conditions: {ready: true}}]
---
apiVersion: oracle.example.com/v1
kind: Gadget
metadata: {name: applied}
spec: {size: 3, parts: [{name: a, tags: [x, "y z"]}, {name: b, depth: {of: 4.5}}], enabled: true, nothing: {}}
status: {phase: Fine, conditions: [{type: Ready, status: "True", reason: Done, message: "all is well", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
---
apiVersion: v1
kind: Node
metadata: {name: $NS-node, annotations: {kwok.x-k8s.io/node: fake}, labels: {node-role.kubernetes.io/worker: ""}}
spec: {podCIDR: 192.0.2.0/24, providerID: "fake://one", taints: [{key: facts, value: only, effect: NoSchedule}]}
`
