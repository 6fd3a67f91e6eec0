#include "reports/html_style.h"

namespace savegate::reports {

std::string_view html_style() {
  return R"(:root{color-scheme:light dark;--bg:#fff;--fg:#1a1f26;--soft:#5a6472;--line:#d9dee5;
--card:#f6f7f9;--link:#0b57c4;--pass:#146c2e;--fail:#b3261e;--invalid:#8a5300;--skip:#5a6472;
--save:#a9c8f5;--phase:#d5dcf0;--coll:#d9cdf2;--write:#3b6fb6;--sync:#0f7b6c;--name:#7a6a9e;
--bad:#f3b3ad}
@media(prefers-color-scheme:dark){:root{--bg:#14171c;--fg:#e6e9ee;--soft:#a3adba;--line:#343b46;
--card:#1c2027;--link:#8ab8ff;--pass:#6fd08c;--fail:#ff8a80;--invalid:#f2b84b;--skip:#a3adba;
--save:#2f4f7d;--phase:#39415a;--coll:#4a3c6b;--write:#7fb0f0;--sync:#4cc2b0;--name:#b3a3dc;
--bad:#7d2f2a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:68rem;padding:1rem 1.25rem 4rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
a{color:var(--link)}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:.5rem;background:var(--bg);padding:.5rem}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
h1{font-size:1.05rem;margin:.5rem 0;color:var(--soft);font-weight:600;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.25rem}
h3{font-size:1.05rem;margin:0;overflow-wrap:anywhere}
h4{font-size:.95rem;margin:1.25rem 0 .35rem}
.verdict{font-size:1.5rem;line-height:1.35;font-weight:600;margin:.25rem 0 1rem}
nav{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;font-size:.95rem}
.o{white-space:nowrap;font-weight:700}.o i{font-style:normal;display:inline-block;width:1.2em}
.pass{color:var(--pass)}.fail{color:var(--fail)}.invalid{color:var(--invalid)}.skip-word,.o.skip{color:var(--skip)}
.o.skip{position:static}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid var(--line)}
th{font-weight:600}thead th{color:var(--soft);font-size:.82rem}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td,dd,li{overflow-wrap:anywhere}
code,pre{font:.85em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.6rem .75rem;margin:.25rem 0;
white-space:pre-wrap;overflow-wrap:anywhere}
.failure{border:1px solid var(--line);border-left:5px solid var(--fail);border-radius:6px;margin:1rem 0;padding:.9rem 1rem}
.failure.is-invalid{border-left-style:double;border-left-color:var(--invalid)}
.failure p{margin:.4rem 0}
.note{color:var(--soft);font-size:.9rem}
.scroll{overflow-x:auto;margin:.25rem 0}
svg{display:block;width:100%;height:auto}
svg.timeline{min-width:46rem;background:var(--card);border:1px solid var(--line);border-radius:6px}
svg.bars{max-width:34rem}
svg text{fill:var(--fg);font:10px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
svg .tick,svg .row{fill:var(--soft)}svg .row{text-anchor:end}svg .rank{font-weight:700;font-size:11px}
svg .sign{font-weight:600;font-size:11px}
.rule,.grid{stroke:var(--line);fill:none}.grid{stroke-dasharray:2 3}
.save{fill:var(--save)}.phase{fill:var(--phase)}.coll{fill:var(--coll)}.write{fill:var(--write)}
.sync{fill:var(--sync)}svg .name{fill:var(--name)}
svg .bad{fill:var(--bad);stroke:var(--fail);stroke-width:1}
.fault{fill:var(--invalid)}.kill{stroke:var(--fail);stroke-width:2.5;fill:none}
.end{stroke:var(--soft);stroke-width:2}.line{stroke:var(--fail);stroke-width:1;stroke-dasharray:3 2}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;font-size:.85rem;color:var(--soft)}
.legend span{display:inline-flex;align-items:center;gap:.3rem}.legend svg{width:16px;height:14px}
summary{cursor:pointer;padding:.25rem 0;font-weight:600}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(19rem,1fr));gap:1rem 2rem}
.strip{font:.95em ui-monospace,Menlo,monospace;letter-spacing:.15em;white-space:nowrap}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;font-size:.9rem;margin:.5rem 0}
dt{color:var(--soft)}dd{margin:0}
@media(max-width:34rem){body{padding:.75rem .8rem 3rem}.verdict{font-size:1.2rem}
.failure{padding:.7rem .7rem}dl{grid-template-columns:1fr}dd{margin-bottom:.35rem}
.wide thead{display:none}.wide tr{display:block;padding:.35rem 0;border-bottom:1px solid var(--line)}
.wide td,.wide th{display:block;border:0;padding:.05rem 0;text-align:left!important}
.wide [data-of]::before{content:attr(data-of) " ";color:var(--soft);font-weight:400}}
@media screen{.failure{content-visibility:auto;contain-intrinsic-size:auto 40rem}}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#444;--line:#bbb;--card:#fff;
--link:#000;--pass:#146c2e;--fail:#b3261e;--invalid:#8a5300;--skip:#444;--save:#a9c8f5;
--phase:#d5dcf0;--coll:#d9cdf2;--write:#3b6fb6;--sync:#0f7b6c;--name:#7a6a9e;--bad:#f3b3ad}
body{max-width:none;font-size:10pt;padding:0}nav,.skip{display:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
svg.timeline{min-width:0}.scroll{overflow:visible}h2,h3,h4,summary{break-after:avoid}
svg,tr,pre{break-inside:avoid}}
)";
}

}  // namespace savegate::reports
