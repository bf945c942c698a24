// Search in pages that are opened as files: browsers let no worker and no request read a file, but a script may be loaded.
// From a server, mkdocs's own worker searches.

if (location.protocol === "file:") {
  window.Worker = function () {
    const add = (name, then) => {
      const script = document.createElement("script");
      script.src = `${base_url}/search/${name}`;
      script.onload = then;
      document.head.append(script);
    };
    let index = null;
    const documents = new Map();
    const build = () => {
      index = lunr(function () {
        this.field("title");
        this.field("text");
        this.ref("location");
        for (const each of SEARCH_INDEX.docs) {
          this.add(each);
          documents.set(each.location, { ...each, summary: each.text.substring(0, 200) });
        }
      });
      this.onmessage({ data: { config: SEARCH_INDEX.config } });
      this.onmessage({ data: { allowSearch: true } });
    };
    this.postMessage = ({ init, query }) => {
      if (init) {
        add("lunr.js", () => add("search_index.js", build));
      } else {
        this.onmessage({ data: { results: index.search(query).map(({ ref }) => documents.get(ref)) } });
      }
    };
  };
}
