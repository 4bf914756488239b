package kubeconfig_test

func formatCases() []kubeconfigCase {
	return []kubeconfigCase{
		one("JSON", `{"kind":"Config","apiVersion":"v1","current-context":"x","clusters":[{"name":"c","cluster":{"server":"https://c"}}],
			"users":[{"name":"u","user":{"token":"\u0061bc"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}]}`),
		one("without kind and apiVersion", "current-context: x\nclusters: [{name: c, cluster: {server: 'https://c'}}]\ncontexts: [{name: x, context: {cluster: c}}]"),
		one("kind without apiVersion", "kind: Config\n"+"current-context: a"+several),
		one("unknown fields", config(https+", future: {a: 1}", "token: a, future: [b]")),
		one("fields in another case", config(https+", Insecure-Skip-TLS-Verify: true", "Token: "+secret+", AS: bob")),
		one("preferences and extensions", "preferences: {colors: true}\nextensions: [{name: a, extension: {b: c}}]\ncurrent-context: a"+several),
		one("YAML 1.1 booleans", config(https+", insecure-skip-tls-verify: yes, disable-compression: on", "")),
		one("anchors and merge keys", "current-context: x\nclusters:\n- name: b\n  cluster: &base {server: 'https://c', tls-server-name: base}\n"+
			"- name: c\n  cluster:\n    <<: *base\n    disable-compression: true\ncontexts: [{name: x, context: {cluster: c}}]"),
		one("a second document", "current-context: a"+several+"\n---\ncurrent-context: b\n"),
		one("a field twice", "current-context: b\ncurrent-context: a"+several),
		one("null fields", config(https+", tls-server-name: ~", "token: null, exec: null, as-groups: null")),
		one("a byte order mark and CRLF", "\ufeffcurrent-context: x\r\nclusters:\r\n- name: c\r\n  cluster:\r\n    server: https://c\r\ncontexts:\r\n- name: x\r\n  context: {cluster: c}\r\n"),
		one("base64 in several lines", config(https+", certificate-authority-data: \"<CERT64>\\n\"", "")),
		one("unknown fields at the top", "future: {a: 1}\ncurrent-context: a"+several),
		one("wrong entries nobody uses", "current-context: a\nclusters: [{name: one, cluster: {server: 'https://one'}}, {name: bad, cluster: {proxy-url: 'ftp://x'}}]\n"+
			"users: [{name: ann, user: {token: t}}, {name: bad, user: {exec: {}}}]\ncontexts: [{name: a, context: {cluster: one, user: ann}}, {name: bad, context: {cluster: bad, user: bad}}]"),
	}
}

func brokenCases() []kubeconfigCase {
	return []kubeconfigCase{
		one("broken: nothing", "", rejected),
		one("broken: white space", "\n \n", rejected),
		one("broken: a comment", "# nothing", rejected),
		one("broken: null", "null", rejected),
		one("broken: a list", "[a, b]", rejected),
		one("broken: a text", secret, rejected),
		one("broken: YAML", "clusters: ["+secret, rejected),
		one("broken: a tab", "clusters:\n\t- name: c", rejected),
		one("broken: an alias of nothing", config(https, "token: *"+secret), rejected),
		one("broken: JSON", `{"kind": "Config", "users": "`+secret, rejected),
		one("broken: JSON that is no YAML 1.1", `{"kind": "Config", "current-context": "a\/b"}`, rejected),
		one("broken: a name that is a bool", "current-context: y\ncontexts: [{name: y, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://c'}}]", rejected),
		one("broken: binary", "\x00\x01\x02", rejected),
		one("broken: another kind", "kind: Pod\ncurrent-context: a"+several, rejected),
		one("broken: another version", "apiVersion: v2\nkind: Config\ncurrent-context: a"+several, rejected),
		one("broken: another version without a kind", "apiVersion: v2\ncurrent-context: a"+several, rejected),
		one("broken: a group", "apiVersion: example.org/v1\nkind: Config\ncurrent-context: a"+several, rejected),
		one("broken: a number for a text", config(https, "password: 12345, username: a"), rejected),
		one("broken: a text for a bool", config(https+", insecure-skip-tls-verify: 'true'", ""), rejected),
		one("broken: a mapping for a list", "clusters: {c: {server: 'https://c'}}", rejected),
		one("broken: a text for a mapping", "current-context: x\nclusters: [{name: c, cluster: 'https://c'}]", rejected),
		one("broken: base64", config(https, "client-certificate-data: '"+secret+"', client-key-data: <KEY64>"), rejected),
		one("broken: base64 of an entry nobody uses", "current-context: a"+several+"\nusers: [{name: z, user: {client-key-data: '!'}}]", rejected),
		one("broken: two clusters of a name", "current-context: x\nclusters: [{name: c, cluster: {server: 'https://c'}}, {name: c, cluster: {server: 'https://d'}}]\ncontexts: [{name: x, context: {cluster: c}}]", rejected),
		one("broken: two users of a name", "users: [{name: a}, {name: a}]\ncurrent-context: x\nclusters: [{name: c, cluster: {server: 'https://c'}}]\ncontexts: [{name: x, context: {cluster: c}}]", rejected),
		one("broken: two contexts of a name", "current-context: x\nclusters: [{name: c, cluster: {server: 'https://c'}}]\ncontexts: [{name: x, context: {cluster: c}}, {name: x, context: {cluster: c}}]", rejected),
		one("broken: two extensions of a name", config(https+", extensions: [{name: a, extension: 1}, {name: a, extension: 2}]", ""), rejected),
	}
}
