package difftest

// syntheticDefinitions are definitions with rarely used features.
const syntheticDefinitions = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.diff.example}
spec:
  group: diff.example
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    additionalPrinterColumns:
    - {name: Size, type: string, jsonPath: .spec.size}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Parts, type: string, jsonPath: ".spec.parts[*].name", priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    selectableFields:
    - jsonPath: .spec.size
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: string, enum: [small, medium, large]}
              replicas: {type: integer, format: int32, minimum: 0, maximum: 10, default: 1}
              port: {x-kubernetes-int-or-string: true}
              weight: {type: number, minimum: 0, exclusiveMinimum: true}
              enabled: {type: boolean, default: true}
              note: {type: string, maxLength: 20, pattern: "^[a-z ]*$", nullable: true}
              when: {type: string, format: date-time}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              options: {type: object, additionalProperties: {type: string, minLength: 1}}
              parts:
                type: array
                maxItems: 4
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    count: {type: integer, default: 2}
                    mode: {type: string, default: fast}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              atomic: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: integer}}}
          status:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: string}
              phase: {type: string}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items: {type: object, required: [type, status], properties: {type: {type: string}, status: {type: string}}}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: zones.diff.example}
spec:
  group: diff.example
  scope: Cluster
  names: {plural: zones, singular: zone, kind: Zone, listKind: ZoneList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              region: {type: string, default: north}
              nested: {type: object, properties: {deep: {type: array, items: {type: array, items: {type: integer}}}}}
              ratio: {type: number, multipleOf: 0.5}
              either: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}
              embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`

// ruledDefinitions is a definition with all kinds of CEL rules, in addition to definitions of the corpus.
const ruledDefinitions = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ruleds.diff.example}
spec:
  group: diff.example
  scope: Namespaced
  names: {plural: ruleds, singular: ruled, kind: Ruled, listKind: RuledList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-validations:
        - {rule: "!has(self.status) || !has(self.status.replicas) || self.status.replicas <= 4", message: too many replicas}
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "self.minimum <= self.maximum", message: minimum above maximum, fieldPath: .minimum, reason: FieldValueForbidden}
            - {rule: "!has(self.text) || self.text.matches('^[a-z]+$')", messageExpression: "'not lower case: ' + self.text"}
            - {rule: "!has(oldSelf.fixed) || has(self.fixed)", message: fixed cannot be removed}
            properties:
              replicas: {type: integer, minimum: 0, x-kubernetes-validations: [{rule: "self != 3", message: not three}]}
              minimum: {type: integer, default: 1}
              maximum: {type: integer, default: 10}
              text: {type: string, maxLength: 20}
              fixed: {type: string, maxLength: 20, x-kubernetes-validations: [{rule: self == oldSelf, message: fixed is immutable}]}
              items:
                type: array
                maxItems: 5
                items: {type: integer, x-kubernetes-validations: [{rule: "self < 15"}]}
              parts:
                type: array
                maxItems: 4
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  x-kubernetes-validations: [{rule: "!has(self.count) || self.count >= oldSelf.count", message: counts do not fall}]
                  properties: {name: {type: string, maxLength: 20}, count: {type: integer, default: 2}}
          status:
            type: object
            properties:
              replicas: {type: integer}
              phase: {type: string, maxLength: 20, x-kubernetes-validations: [{rule: "self != 'Broken'", messageExpression: "'never ' + self"}]}`
