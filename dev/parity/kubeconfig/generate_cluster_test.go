package kubeconfig_test

func clusterCases() []kubeconfigCase {
	ca := with(map[string]string{"ca.crt": "<CERT>", "certs/ca.crt": "<CERT>", "no.crt": "not a certificate"})
	return []kubeconfigCase{
		one("a cluster alone", config(https, "")),
		one("a path before /api", config("server: 'https://10.0.0.1/k8s/clusters/a/'", "")),
		one("a query nobody sends", config("server: 'https://10.0.0.1/k8s?a=b#c'", "")),
		one("authority inline", config(https+", certificate-authority-data: <CERT64>", "")),
		one("authority in a file", config(https+", certificate-authority: ca.crt", ""), ca),
		one("authority in a folder below", config(https+", certificate-authority: certs/../certs/ca.crt", ""), ca),
		one("authority by its full name", config(https+", certificate-authority: '<DIR>/ca.crt'", ""), ca),
		one("authority both ways", config(https+", certificate-authority: ca.crt, certificate-authority-data: <CERT64>", ""), ca, rejected),
		one("authority missing", config(https+", certificate-authority: ca.crt", ""), rejected),
		one("authority that is none", config(https+", certificate-authority: no.crt", ""), ca, rejected),
		one("authority inline that is none", config(https+", certificate-authority-data: eHl6enk=", ""), rejected),
		one("tls-server-name", config(https+", tls-server-name: kubernetes.default", "")),
		one("insecure", config(https+", insecure-skip-tls-verify: true", "")),
		one("insecure with a server name", config(https+", insecure-skip-tls-verify: true, tls-server-name: a", "")),
		one("insecure with an authority", config(https+", insecure-skip-tls-verify: true, certificate-authority-data: <CERT64>", ""), rejected),
		one("proxy http", config(https+", proxy-url: 'http://proxy:3128'", "")),
		one("proxy https with a password", config(https+", proxy-url: 'https://u:"+secret+"@proxy:3128'", "")),
		one("proxy socks5", config(https+", proxy-url: 'socks5://127.0.0.1:1080'", "")),
		one("proxy of another scheme", config(https+", proxy-url: 'ftp://u:"+secret+"@proxy'", ""), rejected),
		one("proxy that is no URL", config(https+", proxy-url: 'http://u:"+secret+"@%zz'", ""), rejected),
		one("disable-compression", config(https+", disable-compression: true", "")),
		one("no server", config("insecure-skip-tls-verify: true", ""), rejected),
		one("an empty cluster", config("", ""), rejected),
		one("a server that is no URL", config("server: 'https://[::1'", ""), differs("client-go takes it for a configuration and fails in each request")),
		one("a server with a password", config("server: 'https://u:"+secret+"@10.0.0.1'", ""), differs(
			"Go's HTTP client sends it as basic authentication before any other credential; a URL ends up in logs, so anykind asks for username and password")),
		one("http drops the user and TLS", config("server: 'http://10.0.0.1', certificate-authority-data: <CERT64>, insecure-skip-tls-verify: true",
			"token: "+secret+", as: bob")),
		one("host and port alone mean http", config("server: '10.0.0.1:8080', certificate-authority-data: <CERT64>", "token: "+secret)),
		one("a name and port alone mean http", config("server: 'localhost:8080'", "")),
		one("extensions that nobody knows", config(https+", extensions: [{name: minikube.sigs.k8s.io, extension: {version: v1, last: [1, 2.5, null]}}]", "")),
	}
}
