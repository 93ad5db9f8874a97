-- What release 0.1.0 (schema version 1) wrote: one study with a finished round and one of which two results are missing.
PRAGMA journal_mode = WAL;
BEGIN TRANSACTION;
CREATE TABLE dataset (
    sha256 VARCHAR(64) NOT NULL,
    rows INTEGER NOT NULL,
    x BLOB NOT NULL,
    y BLOB NOT NULL,
    PRIMARY KEY (sha256)
);
INSERT INTO "dataset" VALUES('576230e521068f7170cc7df0969cd3bc01b53511e1e8b37be6960c0d25ccd585',2,X'789C636000810FF60C10E000000BE70170',X'789C636000810FF6608A41C001000C070180');
CREATE TABLE design (
    id INTEGER NOT NULL,
    round INTEGER NOT NULL,
    position INTEGER NOT NULL,
    member INTEGER NOT NULL,
    x BLOB NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (round, position),
    FOREIGN KEY(round) REFERENCES round (id)
);
INSERT INTO "design" VALUES(1,1,0,-1,X'9E6D39F41ADDE93F');
INSERT INTO "design" VALUES(2,1,1,-1,X'EF798386F6181040');
INSERT INTO "design" VALUES(3,1,2,-1,X'0029A993330D1840');
INSERT INTO "design" VALUES(4,2,0,-1,X'58B607B925920E40');
INSERT INTO "design" VALUES(5,2,1,-1,X'0444D94BF3E81540');
INSERT INTO "design" VALUES(6,2,2,-1,X'02A05F6420751040');
CREATE TABLE diffbbo_schema (
    version INTEGER NOT NULL,
    PRIMARY KEY (version)
);
INSERT INTO "diffbbo_schema" VALUES(1);
CREATE TABLE result (
    design INTEGER NOT NULL,
    status VARCHAR(20) NOT NULL,
    value FLOAT,
    error TEXT NOT NULL,
    seconds FLOAT NOT NULL,
    finished DATETIME NOT NULL,
    PRIMARY KEY (design),
    FOREIGN KEY(design) REFERENCES design (id)
);
INSERT INTO "result" VALUES(1,'ok',6.53252530826894384219e-01,'',2.01538001419976353645e-04,'2026-01-01 00:00:00.000000');
INSERT INTO "result" VALUES(2,'ok',1.61956176424673756741e+01,'',1.78914997377432882785e-04,'2026-01-01 00:00:00.000000');
INSERT INTO "result" VALUES(3,'ok',3.61548709538042629669e+01,'',7.18469964340329170227e-05,'2026-01-01 00:00:00.000000');
INSERT INTO "result" VALUES(4,'ok',1.46027999915333257514e+01,'',6.00189960096031427383e-05,'2026-01-01 00:00:00.000000');
CREATE TABLE round (
    id INTEGER NOT NULL,
    study INTEGER NOT NULL,
    number INTEGER NOT NULL,
    info TEXT NOT NULL,
    created DATETIME NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (study, number),
    FOREIGN KEY(study) REFERENCES study (id)
);
INSERT INTO "round" VALUES(1,1,1,'{"distinct": 1.0, "fallback": 0, "notes": [], "failure_share": 0.0, "ask_s": 0.010239354996883776, "facts": {}}','2026-01-01 00:00:00.000000');
INSERT INTO "round" VALUES(2,1,2,'{"distinct": 1.0, "fallback": 0, "notes": [], "failure_share": 0.0, "ask_s": 0.00015599099424434826, "facts": {}}','2026-01-01 00:00:00.000000');
CREATE TABLE study (
    id INTEGER NOT NULL,
    name VARCHAR(200) NOT NULL,
    task VARCHAR(200) NOT NULL,
    method VARCHAR(200) NOT NULL,
    seed INTEGER NOT NULL,
    minimize BOOLEAN NOT NULL,
    settings TEXT NOT NULL,
    space TEXT NOT NULL,
    start VARCHAR(64) NOT NULL,
    environment TEXT NOT NULL,
    created DATETIME NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (name),
    FOREIGN KEY(start) REFERENCES dataset (sha256)
);
INSERT INTO "study" VALUES(1,'old','line','random',0,0,'{"task": "line", "batch": 3, "method": "random", "seed": 0, "minimize": false}','{"variable": [{"type": "real", "name": "x", "lower": 0.0, "upper": 10.0, "scale": "linear"}]}','576230e521068f7170cc7df0969cd3bc01b53511e1e8b37be6960c0d25ccd585','{"diffbbo": "0.1.0"}','2026-01-01 00:00:00.000000');
COMMIT;
