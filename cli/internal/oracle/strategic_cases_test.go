package oracle

// strategicCases are strategic merge patches that are merged locally.
func strategicCases() []oracleCase {
	var cases []oracleCase
	for _, patch := range []string{
		`{"metadata":{"labels":{"new":"label","app":null}}}`,
		`{"spec":{"replicas":4,"paused":true}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"example.com/web:2"}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"new","image":"example.com/new:1"}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"$patch":"replace"},{"name":"only","image":"a"}]}}}}`,
		`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"side"},{"name":"web"}],"containers":[{"name":"side","image":"b"}]}}}}`,
		`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"side"},{"name":"web"}]}}}}`,
		`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"new"},{"name":"side"}],"containers":[{"name":"new","image":"b"}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"2"},{"name":"C","value":"3"}]}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"B","$patch":"delete"}],"ports":[{"containerPort":9090}]}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","command":["a","b"]}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","env":null}]}}}}`,
		`{"spec":{"template":{"spec":{"volumes":[{"name":"data","$retainKeys":["name","configMap"],"configMap":{"name":"x"}}]}}}}`,
		`{"spec":{"template":{"spec":{"volumes":[{"name":"data","emptyDir":{"medium":"Memory"}},{"name":"more","emptyDir":{}}]}}}}`,
		`{"spec":{"template":{"spec":{"tolerations":[{"key":"b"}],"nodeSelector":{"$patch":"replace","x":"y"}}}}}`,
		`{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`,
		`{"spec":{"strategy":{"$patch":"delete"}}}`,
		`{"metadata":{"finalizers":["example.com/b","example.com/c"]}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`,
		`{"metadata":{"$setElementOrder/finalizers":["example.com/b","example.com/a"],"finalizers":["example.com/b"]}}`,
		`{"spec":{"template":{"metadata":{"annotations":{"a":null,"b":"c"}}}}}`,
		`{}`,
	} {
		cases = append(cases, oracleCase{line: "patch -f object.yaml --local -o yaml -p '" + patch + "'"})
	}
	for _, patch := range []string{
		`{"spec":{"template":{"spec":{"containers":[{"image":"no-key"}]}}}}`,
		`{"spec":{"strategy":{"$patch":"nonsense"}}}`,
		`{"spec":{"strategy":{"$retainKeys":["type"],"rollingUpdate":{}}}}`,
	} {
		cases = append(cases, oracleCase{line: "patch -f object.yaml --local -p '" + patch + "'", fails: true})
	}
	cases = append(cases,
		oracleCase{line: `patch -f widget.yaml --local -p '{"spec":{"size":2}}'`, fails: true},
		oracleCase{line: `patch -f service.yaml --local -o yaml -p '{"spec":{"ports":[{"port":80,"name":"web"},{"port":443,"name":"tls"}]}}'`},
		oracleCase{line: `patch -f service.yaml --local -o name -p '{"spec":{"type":"NodePort"}}'`},
		oracleCase{line: `patch -f service.yaml --local --type=merge -o yaml -p '{"spec":{"ports":[{"port":443}]}}'`},
		oracleCase{line: `patch -f service.yaml --local --type=json -o yaml -p '[{"op":"add","path":"/spec/ports/-","value":{"port":443}}]'`},
	)
	for i := range cases {
		cases[i].readOnly = true
		cases[i].files = map[string]string{
			"object.yaml": strategicObject, "service.yaml": webService,
			"widget.yaml": "apiVersion: oracle.example.com/v1\nkind: Widget\nmetadata: {name: small}\nspec: {size: 1}\n",
		}
	}
	return append(cases,
		oracleCase{line: `patch deploy web --dry-run=client -o jsonpath={.spec.template.spec.containers} -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.com/side:2"}]}}}}'`, setup: webDeployment},
		oracleCase{line: `run web --image=web --dry-run=client -o yaml --override-type=strategic --overrides '{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"1"}]}]}}'`},
	)
}

const strategicObject = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}, finalizers: [example.com/a, example.com/b]}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  template:
    metadata: {labels: {app: web}, annotations: {a: "1"}}
    spec:
      nodeSelector: {zone: a}
      tolerations: [{key: a}]
      volumes: [{name: data, emptyDir: {}}, {name: config, configMap: {name: c}}]
      containers:
      - name: web
        image: example.com/web:1
        command: [run]
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        ports: [{containerPort: 8080}]
      - {name: side, image: "example.com/side:1"}
`
