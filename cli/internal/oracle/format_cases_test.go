package oracle

// formatCases are lines over built-in and custom kinds in every format.
func formatCases() []oracleCase {
	objects := []string{
		"cm/settings", "secret/password", "svc/web", "deploy/web", "pod/solo", "ns/kube-system", "node/node-1", "sa/default",
		"widget/small", "crd/widgets.oracle.example.com", "clusterrole/view", "priorityclass/system-node-critical",
	}
	formats := []string{
		"json", "yaml", "kyaml", "name", "wide", "jsonpath={.metadata.name}", "jsonpath-as-json={.metadata.labels}",
		"custom-columns=KIND:.kind,NAME:.metadata.name,NONE:.none",
		"'go-template={{range $k, $v := .metadata.labels}}{{$k}}={{$v}} {{end}}{{.kind}}'",
	}
	var cases []oracleCase
	for i, object := range objects {
		for j, format := range formats {
			if (i+j)%2 == 0 { // half of the pairs: each object and each format occurs
				cases = append(cases, oracleCase{line: "get " + object + " -o " + format, readOnly: true})
			}
		}
	}
	return cases
}
